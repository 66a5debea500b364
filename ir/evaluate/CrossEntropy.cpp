// Reference values of cross-entropy and its gradient.
#include "ir/evaluate/Targets.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace gradc::nn;

LogicalResult CrossEntropyOp::evaluate(ArrayRef<HostTensor> operands,
                                       MutableArrayRef<HostTensor> results) {
  const HostTensor &logits = operands[0], &targets = operands[1];
  int64_t columns = logits.columns();
  if (failed(checkTargets(*this, targets, columns)))
    return failure();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    const double *row = logits.values.data() + r * columns;
    double largest = *std::max_element(row, row + columns), sum = 0;
    for (int64_t c = 0; c < columns; ++c)
      sum += std::exp(row[c] - largest);
    double lse = largest + std::log(sum);
    results[0][r] = targets[r] < 0 ? 0 : lse - row[static_cast<int64_t>(targets[r])];
    results[1][r] = lse;
  }
  return success();
}

LogicalResult CrossEntropyGradOp::evaluate(ArrayRef<HostTensor> operands,
                                           MutableArrayRef<HostTensor> results) {
  const HostTensor &gradient = operands[0], &logits = operands[1], &targets = operands[2],
                   &lse = operands[3];
  int64_t columns = logits.columns();
  if (failed(checkTargets(*this, targets, columns)))
    return failure();
  for (int64_t r = 0; r < logits.rows(); ++r) {
    if (targets[r] < 0)
      continue; // no label: no gradient
    for (int64_t c = 0; c < columns; ++c) {
      double probability = std::exp(logits[r * columns + c] - lse[r]);
      double isTarget = static_cast<double>(c) == targets[r] ? 1 : 0;
      results[0][r * columns + c] = gradient[r] * (probability - isTarget);
    }
  }
  return success();
}

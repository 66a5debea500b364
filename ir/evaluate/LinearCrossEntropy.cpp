// Reference values of the loss of a matrix product's rows and its gradients: a row at a time, from
// the definition.
#include "ir/evaluate/Targets.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace gradc::nn;

namespace {

/// The weight as [features, columns] whatever its layout.
struct Weight {
  const HostTensor &values;
  bool transposed;
  int64_t at(int64_t feature, int64_t column) const {
    return transposed ? column * values.columns() + feature : feature * values.columns() + column;
  }
};

/// A row's softmax and loss.
struct RowLoss {
  std::vector<double> probabilities;
  double loss = 0;
};

RowLoss lossOfRow(const double *input, int64_t features, const Weight &weight, int64_t columns,
                  double target) {
  std::vector<double> logits(columns);
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t f = 0; f < features; ++f)
      logits[c] += input[f] * weight.values[weight.at(f, c)];
  double largest = *std::max_element(logits.begin(), logits.end()), sum = 0;
  for (double logit : logits)
    sum += std::exp(logit - largest);
  double lse = largest + std::log(sum);
  RowLoss row;
  row.loss = target < 0 ? 0 : lse - logits[static_cast<int64_t>(target)];
  for (double logit : logits)
    row.probabilities.push_back(std::exp(logit - lse));
  return row;
}

} // namespace

LogicalResult LinearCrossEntropyOp::evaluate(ArrayRef<HostTensor> operands,
                                             MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0], &targets = operands[2];
  Weight weight{operands[1], getTransposeWeight()};
  RowSpace logits = getLogitsSpace();
  if (failed(checkTargets(*this, targets, logits.columns)))
    return failure();
  for (int64_t r = 0; r < logits.rows; ++r)
    results[0][r] = lossOfRow(input.values.data() + r * input.columns(), input.columns(), weight,
                              logits.columns, targets[r])
                        .loss;
  return success();
}

LogicalResult LinearCrossEntropyGradOp::evaluate(ArrayRef<HostTensor> operands,
                                                 MutableArrayRef<HostTensor> results) {
  const HostTensor &gradient = operands[0], &input = operands[1], &targets = operands[3];
  Weight weight{operands[2], getTransposeWeight()};
  RowSpace logits = getLogitsSpace();
  int64_t features = input.columns();
  if (failed(checkTargets(*this, targets, logits.columns)))
    return failure();
  if (getAccumulator())
    results[1].values = operands[4].values;
  for (int64_t r = 0; r < logits.rows; ++r) {
    const double *x = input.values.data() + r * features;
    RowLoss row = lossOfRow(x, features, weight, logits.columns, targets[r]);
    results[2][r] = row.loss;
    if (targets[r] < 0)
      continue; // no label: no gradient
    for (int64_t c = 0; c < logits.columns; ++c) {
      double isTarget = static_cast<double>(c) == targets[r] ? 1 : 0;
      double d = gradient[r] * (row.probabilities[c] - isTarget);
      for (int64_t f = 0; f < features; ++f) {
        results[0][r * features + f] += d * weight.values[weight.at(f, c)];
        results[1][weight.at(f, c)] += d * x[f];
      }
    }
  }
  return success();
}

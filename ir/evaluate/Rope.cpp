// Reference values of the rotary position embedding.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult RopeOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0], &cosines = operands[1], &sines = operands[2];
  int64_t columns = input.columns(), heads = static_cast<int64_t>(getHeads());
  int64_t headDim = columns / heads, half = headDim / 2, rows = cosines.rows();
  for (int64_t token = 0; token < input.rows(); ++token) {
    int64_t position = getPositions() ? static_cast<int64_t>(operands[3][token]) : token % rows;
    if (position < 0 || position >= rows)
      return emitOpError("expected positions from 0 to ")
             << rows - 1 << ", got: " << position << " at token " << token;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 0; i < half; ++i) {
        int64_t at = token * columns + head * headDim + i;
        int64_t entry = position * half + i;
        double cosine = cosines[entry], sine = getInverse() ? -sines[entry] : sines[entry];
        double a = input[at], b = input[at + half];
        results[0][at] = a * cosine - b * sine;
        results[0][at + half] = b * cosine + a * sine;
      }
  }
  return success();
}

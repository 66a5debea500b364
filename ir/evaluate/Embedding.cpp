// Reference values of table look-ups and their gradient.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

namespace {

LogicalResult checkIndices(Operation *op, const HostTensor &indices, int64_t rows) {
  for (int64_t n = 0; n < indices.size(); ++n)
    if (indices[n] >= static_cast<double>(rows))
      return op->emitOpError("expected indices below ")
             << rows << ", got: " << static_cast<int64_t>(indices[n]) << " at position " << n;
  return success();
}

} // namespace

LogicalResult EmbeddingOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  const HostTensor &indices = operands[0], &table = operands[1];
  int64_t columns = table.columns();
  if (failed(checkIndices(*this, indices, table.rows())))
    return failure();
  for (int64_t n = 0; n < indices.size(); ++n)
    if (indices[n] >= 0)
      for (int64_t c = 0; c < columns; ++c)
        results[0][n * columns + c] = table[static_cast<int64_t>(indices[n]) * columns + c];
  return success();
}

LogicalResult EmbeddingGradOp::evaluate(ArrayRef<HostTensor> operands,
                                        MutableArrayRef<HostTensor> results) {
  const HostTensor &indices = operands[0], &gradient = operands[1];
  HostTensor &result = results[0];
  int64_t columns = result.columns();
  if (failed(checkIndices(*this, indices, result.rows())))
    return failure();
  if (getAccumulator())
    result.values = operands[2].values;
  for (int64_t n = 0; n < indices.size(); ++n)
    if (indices[n] >= 0)
      for (int64_t c = 0; c < columns; ++c)
        result[static_cast<int64_t>(indices[n]) * columns + c] += gradient[n * columns + c];
  return success();
}

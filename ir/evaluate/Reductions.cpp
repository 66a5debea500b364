// Reference values of the sums.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult RowSumOp::evaluate(ArrayRef<HostTensor> operands,
                                 MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0];
  for (int64_t i = 0; i < input.size(); ++i)
    results[0][i / input.columns()] += input[i];
  return success();
}

LogicalResult ColumnPartialsOp::evaluate(ArrayRef<HostTensor> operands,
                                         MutableArrayRef<HostTensor> results) {
  constexpr int64_t chunkRows = 64;
  const HostTensor &input = operands[0];
  int64_t columns = input.columns();
  for (int64_t r = 0; r < input.rows(); ++r)
    for (int64_t c = 0; c < columns; ++c)
      results[0][r / chunkRows * columns + c] += input[r * columns + c];
  return success();
}

LogicalResult CountValidOp::evaluate(ArrayRef<HostTensor> operands,
                                     MutableArrayRef<HostTensor> results) {
  for (double target : operands[0].values)
    results[0][0] += target >= 0 ? 1 : 0;
  return success();
}

LogicalResult FoldRowsOp::evaluate(ArrayRef<HostTensor> operands,
                                   MutableArrayRef<HostTensor> results) {
  for (int64_t i = 0; i < operands[0].size(); ++i)
    results[0][i % operands[0].columns()] += operands[0][i];
  return success();
}

LogicalResult SumOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results) {
  for (double value : operands[0].values)
    results[0][0] += value;
  return success();
}

LogicalResult SquareSumsOp::evaluate(ArrayRef<HostTensor> operands,
                                     MutableArrayRef<HostTensor> results) {
  constexpr int64_t chunkElements = 16384;
  for (int64_t i = 0; i < operands[0].size(); ++i)
    results[0][i / chunkElements] += operands[0][i] * operands[0][i];
  return success();
}

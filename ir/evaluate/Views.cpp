// Reference values of the views.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult ReshapeOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  results[0].values = operands[0].values;
  return success();
}

LogicalResult AfterOp::evaluate(ArrayRef<HostTensor> operands,
                                MutableArrayRef<HostTensor> results) {
  results[0].values = operands[0].values;
  return success();
}

LogicalResult SliceOp::evaluate(ArrayRef<HostTensor> operands,
                                MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0];
  HostTensor &result = results[0];
  int64_t columns = result.columns(), offset = static_cast<int64_t>(getOffset());
  if (getRows()) {
    int64_t elements = result.size() / result.shape.front(); // of an entry
    std::copy_n(input.values.begin() + offset * elements, result.size(), result.values.begin());
    return success();
  }
  for (int64_t r = 0; r < result.rows(); ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[r * columns + c] = input[r * input.columns() + offset + c];
  return success();
}

LogicalResult ConcatOp::evaluate(ArrayRef<HostTensor> operands,
                                 MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  int64_t offset = 0;
  for (const HostTensor &input : operands) {
    if (getRows()) {
      llvm::copy(input.values, result.values.begin() + offset);
      offset += input.size();
      continue;
    }
    for (int64_t r = 0; r < input.rows(); ++r)
      for (int64_t c = 0; c < input.columns(); ++c)
        result[r * result.columns() + offset + c] = input[r * input.columns() + c];
    offset += input.columns();
  }
  return success();
}

static void transpose(const HostTensor &input, HostTensor &result) {
  int64_t columns = input.columns(), rows = input.shape[input.shape.size() - 2];
  for (int64_t i = 0; i < input.size(); ++i) {
    int64_t batch = i / (rows * columns), r = i / columns % rows, c = i % columns;
    result[batch * rows * columns + c * rows + r] = input[i];
  }
}
LogicalResult TransposeOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  transpose(operands[0], results[0]);
  return success();
}
LogicalResult TransposedCopyOp::evaluate(ArrayRef<HostTensor> operands,
                                         MutableArrayRef<HostTensor> results) {
  transpose(operands[0], results[0]);
  return success();
}

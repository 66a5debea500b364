// Verifiers of the views.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult ReshapeOp::verify() {
  if (failed(expectSameElementType(*this, "result", getResult(), "input", getInput())))
    return failure();
  int64_t from = cast<RankedTensorType>(getInput().getType()).getNumElements();
  int64_t to = cast<RankedTensorType>(getResult().getType()).getNumElements();
  if (from != to)
    return emitOpError("expected a result of ") << from << " elements, got: " << to;
  return success();
}

LogicalResult SliceOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 1, /*atLeast=*/true)) ||
      failed(expectRank(*this, "result", getResult(), shapeOf(getInput()).size())) ||
      failed(expectSameElementType(*this, "result", getResult(), "input", getInput())))
    return failure();
  SmallVector<int64_t> shape(shapeOf(getInput()));
  size_t dimension = getRows() ? 0 : shape.size() - 1;
  int64_t all = shape[dimension], size = shapeOf(getResult())[dimension], offset = getOffset();
  shape[dimension] = size;
  if (failed(expectShape(*this, "result", getResult(), shape)))
    return failure();
  if (offset < 0 || offset > all - size)
    return emitOpError("expected an offset from 0 to ") << all - size << ", got: " << offset;
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("expected one input or more, got: 0");
  if (failed(expectRank(*this, "result", getResult(), 1, /*atLeast=*/true)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(getResult()));
  size_t dimension = getRows() ? 0 : shape.size() - 1;
  int64_t all = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    std::string name = "input #" + std::to_string(i);
    if (failed(expectRank(*this, name, input, shape.size())) ||
        failed(expectSameElementType(*this, name, input, "result", getResult())))
      return failure();
    shape[dimension] = shapeOf(input)[dimension];
    if (failed(expectShape(*this, name, input, shape)))
      return failure();
    all += shape[dimension];
  }
  shape[dimension] = all;
  return expectShape(*this, "result", getResult(), shape);
}

static LogicalResult verifyTranspose(Operation *op, Value input, Value result) {
  if (failed(expectRank(op, "input", input, 2, /*atLeast=*/true)) ||
      failed(expectSameElementType(op, "result", result, "input", input)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(input));
  std::swap(shape[shape.size() - 2], shape.back());
  return expectShape(op, "result", result, shape);
}
LogicalResult TransposeOp::verify() { return verifyTranspose(*this, getInput(), getResult()); }
LogicalResult TransposedCopyOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 2)))
    return failure();
  return verifyTranspose(*this, getInput(), getResult());
}

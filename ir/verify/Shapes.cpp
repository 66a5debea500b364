// The verifiers' shared checks and their errors.
#include "ir/verify/Shapes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gradc::nn;

std::string gradc::nn::shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(llvm::map_range(shape, [](int64_t dim) { return std::to_string(dim); }), "x");
}

LogicalResult gradc::nn::expectShape(Operation *op, StringRef name, Value value,
                                     ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return success();
  return op->emitOpError("expected ")
         << name << " of shape " << shapeText(shape) << ", got: " << shapeText(shapeOf(value));
}

LogicalResult gradc::nn::expectRank(Operation *op, StringRef name, Value value, size_t rank,
                                    bool atLeast) {
  size_t actual = shapeOf(value).size();
  if (actual == rank || (atLeast && actual > rank))
    return success();
  return op->emitOpError("expected ")
         << name << " of rank " << rank << (atLeast ? " or more" : "") << ", got: " << actual;
}

LogicalResult gradc::nn::expectSameType(Operation *op, StringRef name, Value value,
                                        StringRef otherName, Value other) {
  if (value.getType() == other.getType())
    return success();
  return op->emitOpError("expected ") << name << " to have the type of " << otherName << ", "
                                      << other.getType() << ", got: " << value.getType();
}

LogicalResult gradc::nn::expectSameElementType(Operation *op, StringRef name, Value value,
                                               StringRef otherName, Value other) {
  if (elementTypeOf(value) == elementTypeOf(other))
    return success();
  return op->emitOpError("expected ")
         << name << " to have the element type of " << otherName << ", " << elementTypeOf(other)
         << ", got: " << elementTypeOf(value);
}

LogicalResult gradc::nn::expectPositive(Operation *op, StringRef name, int64_t value) {
  if (value > 0)
    return success();
  return op->emitOpError("expected a positive ") << name << ", got: " << value;
}

LogicalResult gradc::nn::expectPositive(Operation *op, StringRef name, const APFloat &value) {
  if (value.isFinite() && !value.isNegative() && !value.isZero())
    return success();
  return op->emitOpError("expected a positive ") << name << ", got: " << value.convertToDouble();
}

LogicalResult gradc::nn::expectDropoutRate(Operation *op, StringRef name, const APFloat &rate) {
  if (rate.isFinite() && !rate.isNegative() && rate.convertToDouble() < 1)
    return success();
  return op->emitOpError("expected ")
         << name << " to be at least 0 and below 1, got: " << rate.convertToDouble();
}

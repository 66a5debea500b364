// Verifiers of the loss of a matrix product's rows.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

namespace {

/// What forward and backward have in common.
template <typename Op> LogicalResult verifyOperands(Op op) {
  if (failed(expectRank(op, "input", op.getInput(), 2)) ||
      failed(expectRank(op, "weight", op.getWeight(), 2)) ||
      failed(expectSameElementType(op, "weight", op.getWeight(), "input", op.getInput())))
    return failure();
  int64_t rows = shapeOf(op.getInput())[0], features = shapeOf(op.getInput())[1];
  int64_t inner = shapeOf(op.getWeight())[op.getTransposeWeight() ? 1 : 0];
  if (inner != features)
    return op.emitOpError("expected an inner dimension of weight equal to that of input, ")
           << features << ", got: " << inner;
  if (op.getTf32() && !elementTypeOf(op.getInput()).isF32())
    return op.emitOpError("expected operands of f32 with tf32, got: ")
           << elementTypeOf(op.getInput());
  if (failed(expectShape(op, "targets", op.getTargets(), rows)))
    return failure();
  return expectShape(op, "loss", op.getLoss(), {rows, 1});
}

/// A gradient has the shape of what it is the gradient of, and its type or f32.
LogicalResult verifyGradient(Operation *op, StringRef name, Value gradient, StringRef ofName,
                             Value of) {
  if (failed(expectShape(op, name, gradient, shapeOf(of))))
    return failure();
  if (elementTypeOf(gradient).isF32() || elementTypeOf(gradient) == elementTypeOf(of))
    return success();
  return op->emitOpError("expected ")
         << name << " to have the element type f32 or that of " << ofName << ", "
         << elementTypeOf(of) << ", got: " << elementTypeOf(gradient);
}

} // namespace

LogicalResult LinearCrossEntropyOp::verify() { return verifyOperands(*this); }

LogicalResult LinearCrossEntropyGradOp::verify() {
  if (failed(verifyOperands(*this)) ||
      failed(expectShape(*this, "gradient", getGradient(), shapeOf(getLoss()))) ||
      failed(verifyGradient(*this, "input_gradient", getInputGradient(), "input", getInput())) ||
      failed(verifyGradient(*this, "weight_gradient", getWeightGradient(), "weight", getWeight())))
    return failure();
  return getAccumulator() ? expectSameType(*this, "accumulator", getAccumulator(),
                                           "weight_gradient", getWeightGradient())
                          : success();
}

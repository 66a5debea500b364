// Matrices in panels: what memory holds of one, and what the verifiers ask of them.
#include "ir/verify/Shapes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult PanelsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t width,
                                 int64_t depthUnit, bool, bool tf32, bool pairs) {
  if (width < 1 || depthUnit < 1)
    return emitError() << "expected panels of a positive width and depth_unit, got: " << width
                       << " and " << depthUnit;
  if (tf32 && pairs)
    return emitError() << "expected panels of tf32 or of pairs, got both";
  return success();
}

LogicalResult PanelsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2)
    return emitError() << "expected a matrix in panels, got: a tensor of rank " << shape.size();
  if (!elementType.isF32() && !elementType.isBF16() && !elementType.isF16())
    return emitError() << "expected panels of f32, bf16 or f16, got: " << elementType;
  if (getTf32() && !elementType.isF32())
    return emitError() << "expected panels of f32 with tf32, got: " << elementType;
  if (getPairs() && !elementType.isBF16())
    return emitError() << "expected pairs of bf16, got: " << elementType;
  return success();
}

RankedTensorType PanelsAttr::storedType(RankedTensorType matrix) const {
  int64_t depth = matrix.getShape()[getTransposed() ? 1 : 0];
  int64_t columns = matrix.getShape()[getTransposed() ? 0 : 1];
  int64_t steps = llvm::divideCeil(depth, getPairs() ? 2 : 1);
  return RankedTensorType::get({static_cast<int64_t>(llvm::divideCeil(columns, getWidth())),
                                static_cast<int64_t>(llvm::alignTo(steps, getDepthUnit())),
                                getWidth()},
                               Float32Type::get(getContext()));
}

LogicalResult PackPanelsOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("expected at least one result");
  if (failed(expectRank(*this, "input", getInput(), 2)))
    return failure();
  for (Value result : getResults())
    if (failed(expectShape(*this, "result", result, shapeOf(getInput()))) ||
        failed(expectSameElementType(*this, "result", result, "input", getInput())))
      return failure();
  return success();
}

// Views: backwards, folders, and their part in fusion.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

FusionRole ReshapeOp::getFusionRole() { return FusionRole::view; }
FusionRole SliceOp::getFusionRole() { return FusionRole::view; }
FusionRole ConcatOp::getFusionRole() { return FusionRole::view; }
FusionRole TransposeOp::getFusionRole() { return FusionRole::view; }
FusionRole AfterOp::getFusionRole() { return FusionRole::view; }

void AfterOp::buildBackward(OpBuilder &, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = grads[0];
}

void ReshapeOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                              MutableArrayRef<Value> out) {
  out[0] = ReshapeOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput());
  return elements ? OpFoldResult(elements.reshape(cast<ShapedType>(getType()))) : OpFoldResult();
}

/// The dimension that a slice cuts or a concat joins.
static int64_t dimensionOf(Type type, bool rows) {
  return rows ? 0 : cast<RankedTensorType>(type).getRank() - 1;
}

void SliceOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  // Zeros stand beside the slice; gradients of sibling slices meet in autodiff's sum.
  auto wide = cast<RankedTensorType>(getInput().getType());
  auto narrow = cast<RankedTensorType>(getType());
  int64_t dimension = dimensionOf(wide, getRows());
  int64_t before = getOffset(), size = narrow.getShape()[dimension];
  int64_t after = wide.getShape()[dimension] - before - size;
  SmallVector<Value> parts;
  auto zeros = [&](int64_t count) {
    SmallVector<int64_t> shape(wide.getShape());
    shape[dimension] = count;
    if (count > 0)
      parts.push_back(
          splat(builder, getLoc(), RankedTensorType::get(shape, wide.getElementType()), 0));
  };
  zeros(before);
  parts.push_back(grads[0]);
  zeros(after);
  out[0] = ConcatOp::create(builder, getLoc(), wide, parts, getRows());
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto inner = getInput().getDefiningOp<SliceOp>(); inner && inner.getRows() == getRows()) {
    setOffset(getOffset() + inner.getOffset());
    getInputMutable().assign(inner.getInput());
    return getResult();
  }
  return {};
}

void ConcatOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                             MutableArrayRef<Value> out) {
  int64_t offset = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    out[i] = SliceOp::create(builder, getLoc(), type, grads[0], offset, getRows());
    offset += type.getDimSize(dimensionOf(type, getRows()));
  }
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return getInputs().size() == 1 ? OpFoldResult(getInputs()[0]) : OpFoldResult();
}

void TransposeOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                MutableArrayRef<Value> out) {
  out[0] = TransposeOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<TransposeOp>())
    return inner.getInput();
  return {};
}

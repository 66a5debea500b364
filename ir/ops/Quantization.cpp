// Fp8 with a scale a tensor: row bodies and backwards.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;
using RowBuilder = row::Builder;
using row::NodeId;

Float8Range gradc::nn::rangeOf(Type format) {
  return isa<Float8E4M3FNType>(format) ? Float8Range{448, 0x1p8} : Float8Range{57344, 0x1p15};
}

Value gradc::nn::rowAmax(OpBuilder &builder, Location loc, Value value) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(value.getType()).getShape());
  if (shape.empty())
    shape.push_back(1);
  shape.back() = 1;
  return RowAmaxOp::create(builder, loc, RankedTensorType::get(shape, builder.getF32Type()), value);
}

Value gradc::nn::largestOf(OpBuilder &builder, Location loc, Value amax) {
  auto type = cast<RankedTensorType>(amax.getType());
  if (type.getRank() == 0)
    return amax;
  auto shaped = [&](ArrayRef<int64_t> shape) { return type.clone(shape); };
  Value oneRow = ReshapeOp::create(builder, loc, shaped({1, type.getNumElements()}), amax);
  return ReshapeOp::create(builder, loc, shaped({}), rowAmax(builder, loc, oneRow));
}

namespace {

NodeId magnitude(RowBuilder &b, NodeId x) { return b.maximum(x, b.neg(x)); }

/// Not rounded yet. An infinity becomes NaN: x - x is 0 for finite numbers only.
NodeId scaledDown(RowBuilder &b, NodeId x, NodeId scale) {
  return b.add(b.mul(x, b.div(b.constant(1), scale)), b.sub(x, x));
}

} // namespace

//===-- Scales
//-------------------------------------------------------------------------------------===//

RowSpace RowAmaxOp::getRowSpace() { return rowSpaceOf(getInput().getType()); }
BufferKind RowAmaxOp::getOperandKind(unsigned) { return BufferKind::matrix; }
BufferKind RowAmaxOp::getResultKind(unsigned) { return BufferKind::row; }
void RowAmaxOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                         MutableArrayRef<NodeId> out) {
  out[0] = b.reduceMax(magnitude(b, in[0]));
}

Value RowAmaxOp::getOriginal() { return getInput(); }

RowSpace ScaleOfAmaxOp::getRowSpace() {
  return {1, cast<RankedTensorType>(getAmax().getType()).getNumElements()};
}
BufferKind ScaleOfAmaxOp::getOperandKind(unsigned) { return BufferKind::matrix; }
BufferKind ScaleOfAmaxOp::getResultKind(unsigned) { return BufferKind::row; }
void ScaleOfAmaxOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                             MutableArrayRef<NodeId> out) {
  Float8Range range = rangeOf(getFormat());
  NodeId amax = b.reduceMax(in[0]);
  // Between the power of two below amax, as the format's largest, and its double: both are exact.
  NodeId low = b.mul(b.exponentPart(amax), b.constant(1 / range.largestPower));
  NodeId fits = b.lessEqual(amax, b.mul(low, b.constant(range.largest)));
  NodeId scale = b.select(fits, low, b.add(low, low));
  NodeId bounded = b.maximum(scale, b.constant(0x1p-126));
  NodeId orOne = b.select(b.equal(amax, b.constant(0)), b.constant(1), bounded);
  out[0] = b.add(orOne, b.sub(amax, amax)); // NaN where amax is not finite
}

Value ScaleOfAmaxOp::getOriginal() {
  auto magnitudes = getAmax().getDefiningOp<RowAmaxOp>();
  return magnitudes ? magnitudes.getInput() : Value();
}
std::optional<StringRef> ScaleOfAmaxOp::getCopyPart() { return "fp8_scale"; }
Type ScaleOfAmaxOp::getCopyFormat() { return getFormat(); }

//===-- Numbers
//------------------------------------------------------------------------------------===//

void QuantizeOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                          MutableArrayRef<NodeId> out) {
  out[0] = scaledDown(b, in[0], in[1]); // the cluster rounds what an op gives to its type
}

Value QuantizeOp::getOriginal() {
  auto scale = getScale().getDefiningOp<ScaleOfAmaxOp>();
  return scale && scale.getOriginal() == getInput() ? getInput() : Value();
}
std::optional<StringRef> QuantizeOp::getCopyPart() { return "fp8"; }
Type QuantizeOp::getCopyFormat() { return getElementTypeOrSelf(getType()); }

Value TransposedCopyOp::getOriginal() {
  auto numbers = getInput().getDefiningOp<QuantizeOp>();
  return numbers ? numbers.getOriginal() : Value();
}
std::optional<StringRef> TransposedCopyOp::getCopyPart() { return "fp8_transposed"; }
Type TransposedCopyOp::getCopyFormat() { return getElementTypeOrSelf(getType()); }

void FakeQuantizeOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                              MutableArrayRef<NodeId> out) {
  out[0] = b.mul(b.round(rowDtype(getFormat()), scaledDown(b, in[0], in[1])), in[1]);
}

void FakeQuantizeOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                   MutableArrayRef<Value> out) {
  out[0] = castTo(builder, getLoc(), grads[0], getElementTypeOrSelf(getInput()));
  if (getRecord())
    out[2] = largestOf(builder, getLoc(), getAmax());
}

void QuantizeGradientOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                       MutableArrayRef<Value> out) {
  Value amax = rowAmax(builder, getLoc(), grads[0]);
  Value scale =
      ScaleOfAmaxOp::create(builder, getLoc(), getRecord() ? getRecord() : amax, getFormatAttr());
  out[0] = FakeQuantizeOp::create(builder, getLoc(), grads[0].getType(), grads[0], scale, Value(),
                                  Value(), getFormatAttr());
  if (getRecord())
    out[1] = largestOf(builder, getLoc(), amax);
}
FusionRole QuantizeGradientOp::getFusionRole() { return FusionRole::view; }
bool QuantizeGradientOp::takesRowStride(unsigned index, bool isResult) {
  return isResult || index == 0;
}

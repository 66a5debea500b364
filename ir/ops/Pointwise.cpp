// Pointwise ops: scalar bodies, backwards and folders.
#include "ir/Nn.h"
#include "ir/row/Philox.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using RowBuilder = row::Builder;
using row::NodeId;

namespace {

/// True when `attribute` is a splat of `value`.
bool isSplat(Attribute attribute, double value) {
  auto elements = dyn_cast_or_null<DenseFPElementsAttr>(attribute);
  return elements && elements.isSplat() &&
         elements.getSplatValue<APFloat>().convertToDouble() == value;
}

/// Constants of GELU's tanh form.
constexpr double sqrtTwoOverPi = 0.79788456080286535588;
constexpr double geluCubic = 0.044715;
constexpr double sqrtHalf = 0.70710678118654752440;
constexpr double invSqrtTwoPi = 0.39894228040143267794;

NodeId sigmoid(RowBuilder &b, NodeId x) {
  return b.div(b.constant(1), b.add(b.constant(1), b.exp(b.neg(x))));
}

/// x·(1 + c·x²)·√(2/π), the argument of the tanh form.
NodeId geluInner(RowBuilder &b, NodeId x) {
  NodeId square = b.mul(x, x);
  return b.mul(b.mul(b.constant(sqrtTwoOverPi), x),
               b.add(b.constant(1), b.mul(b.constant(geluCubic), square)));
}

/// σ(2·inner): tanh form as x·σ, which is exact where 0.5·(1 + tanh) cancels for negative x.
NodeId geluTanhGate(RowBuilder &b, NodeId x) {
  return sigmoid(b, b.mul(b.constant(2), geluInner(b, x)));
}

/// Φ(x), the normal distribution function.
NodeId normalCdf(RowBuilder &b, NodeId x) {
  return b.mul(b.constant(0.5), b.add(b.constant(1), b.erf(b.mul(x, b.constant(sqrtHalf)))));
}

NodeId activation(RowBuilder &b, ActivationKind kind, NodeId x) {
  switch (kind) {
  case ActivationKind::Gelu:
    return b.mul(x, normalCdf(b, x));
  case ActivationKind::GeluTanh:
    return b.mul(x, geluTanhGate(b, x));
  case ActivationKind::Silu:
    return b.mul(x, sigmoid(b, x));
  case ActivationKind::Relu:
    // A comparison with a NaN is false, so that NaN passes through.
    return b.select(b.lessEqual(x, b.constant(0)), b.constant(0), x);
  }
  llvm_unreachable("every activation kind is handled");
}

NodeId activationDerivative(RowBuilder &b, ActivationKind kind, NodeId x) {
  switch (kind) {
  case ActivationKind::Gelu: {
    NodeId density = b.mul(b.constant(invSqrtTwoPi), b.exp(b.mul(b.constant(-0.5), b.mul(x, x))));
    return b.add(normalCdf(b, x), b.mul(x, density));
  }
  case ActivationKind::GeluTanh: {
    // d/dx x·s(2u) = s + x·2u'·s·(1-s), u' = √(2/π)·(1 + 3c·x²).
    NodeId s = geluTanhGate(b, x);
    NodeId slope = b.mul(b.constant(2 * sqrtTwoOverPi),
                         b.add(b.constant(1), b.mul(b.constant(3 * geluCubic), b.mul(x, x))));
    return b.add(s, b.mul(b.mul(x, slope), b.mul(s, b.sub(b.constant(1), s))));
  }
  case ActivationKind::Silu: {
    NodeId s = sigmoid(b, x);
    return b.mul(s, b.add(b.constant(1), b.mul(x, b.sub(b.constant(1), s))));
  }
  case ActivationKind::Relu:
    return b.select(b.lessEqual(x, b.constant(0)), b.constant(0), b.constant(1));
  }
  llvm_unreachable("every activation kind is handled");
}

} // namespace

//===-- Scalar bodies
//----------------------------------------------------------------------------===//

std::optional<EpilogueStep> AddOp::getEpilogueStep() {
  bool isColumn = cast<RankedTensorType>(getRhs().getType()).getRank() == 1 &&
                  cast<RankedTensorType>(getType()).getRank() == 2;
  return isColumn ? std::optional(EpilogueStep::addBias) : std::nullopt;
}
std::optional<EpilogueStep> ActivationOp::getEpilogueStep() {
  bool isGelu = getKind() == ActivationKind::GeluTanh;
  return isGelu ? std::optional(EpilogueStep::gelu) : std::nullopt;
}
std::optional<EpilogueStep> ActivationGradOp::getEpilogueStep() {
  bool isGelu = getKind() == ActivationKind::GeluTanh;
  return isGelu ? std::optional(EpilogueStep::geluGradient) : std::nullopt;
}

void AddOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.add(in[0], in[1]);
}
void SubOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.sub(in[0], in[1]);
}
void MulOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.mul(in[0], in[1]);
}
void DivOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.div(in[0], in[1]);
}
void NegOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.neg(in[0]);
}
void ExpOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.exp(in[0]);
}
void LogOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  out[0] = b.log(in[0]);
}
void SqrtOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                      MutableArrayRef<NodeId> out) {
  out[0] = b.sqrt(in[0]);
}
void TanhOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                      MutableArrayRef<NodeId> out) {
  out[0] = b.tanh(in[0]);
}
void ScaleOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                       MutableArrayRef<NodeId> out) {
  out[0] = b.mul(in[0], b.constant(getFactor().convertToDouble()));
}
void ActivationOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                            MutableArrayRef<NodeId> out) {
  out[0] = activation(b, getKind(), in[0]);
}
void ActivationGradOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                                MutableArrayRef<NodeId> out) {
  out[0] = b.mul(in[0], activationDerivative(b, getKind(), in[1]));
}
void DropoutOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                         MutableArrayRef<NodeId> out) {
  double rate = getRate().convertToDouble();
  NodeId stream = b.mulInt(in[4], b.constant(static_cast<int32_t>(row::philoxStreamStep)));
  NodeId number = b.uniform(b.addInt(in[1], stream), in[2], in[3], 0);
  NodeId scaled = b.mul(in[0], b.constant(1 / (1 - rate)));
  out[0] = b.select(b.lessThan(number, b.constant(rate)), b.constant(0), scaled);
}
// The numbers are keyed by row and column.
bool DropoutOp::isElementwise() { return false; }
void MaximumOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                         MutableArrayRef<NodeId> out) {
  out[0] = b.maximum(in[0], in[1]);
}
void BroadcastOp::buildRow(RowBuilder &, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                           MutableArrayRef<NodeId> out) {
  out[0] = in[0];
}
void ClipCoefficientOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                                 MutableArrayRef<NodeId> out) {
  NodeId ratio = b.div(in[1], b.add(in[0], b.constant(1e-6)));
  NodeId clipped = b.minimum(b.constant(1), ratio);
  // Without clipping the factor is 1, kept non-finite where the norm is: norm - norm is NaN there.
  NodeId whole = b.add(b.constant(1), b.sub(in[0], in[0]));
  out[0] = b.select(b.lessEqual(in[1], b.constant(0)), whole, b.add(clipped, b.sub(in[0], in[0])));
}

void SelectFiniteOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                              MutableArrayRef<NodeId> out) {
  // norm - norm is 0 for finite numbers only.
  out[0] = b.select(b.equal(b.sub(in[0], in[0]), b.constant(0)), in[1], in[2]);
}

//===-- Backwards
//--------------------------------------------------------------------------------===//

void AddOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = grads[0];
  out[1] = sumToType(builder, getLoc(), grads[0], getRhs().getType());
}
void SubOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = grads[0];
  out[1] =
      sumToType(builder, getLoc(), NegOp::create(builder, getLoc(), grads[0]), getRhs().getType());
}
void MulOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = MulOp::create(builder, getLoc(), grads[0], getRhs());
  out[1] = sumToType(builder, getLoc(), MulOp::create(builder, getLoc(), grads[0], getLhs()),
                     getRhs().getType());
}
void DivOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = DivOp::create(builder, getLoc(), grads[0], getRhs());
  Value scaled = MulOp::create(builder, getLoc(), out[0], getResult());
  out[1] =
      sumToType(builder, getLoc(), NegOp::create(builder, getLoc(), scaled), getRhs().getType());
}
void NegOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = NegOp::create(builder, getLoc(), grads[0]);
}
void ExpOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = MulOp::create(builder, getLoc(), grads[0], getResult());
}
void LogOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = DivOp::create(builder, getLoc(), grads[0], getInput());
}
void SqrtOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  Value half = ScaleOp::create(builder, getLoc(), grads[0], builder.getF64FloatAttr(0.5));
  out[0] = DivOp::create(builder, getLoc(), half, getResult());
}
void TanhOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  Value square = MulOp::create(builder, getLoc(), getResult(), getResult());
  Value removed = MulOp::create(builder, getLoc(), grads[0], square);
  out[0] = SubOp::create(builder, getLoc(), grads[0], removed);
}
void ScaleOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = ScaleOp::create(builder, getLoc(), grads[0], getFactorAttr());
}
void ActivationOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                 MutableArrayRef<Value> out) {
  out[0] = ActivationGradOp::create(builder, getLoc(), getInput().getType(), grads[0], getInput(),
                                    getKind());
}
void DropoutOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                              MutableArrayRef<Value> out) {
  out[0] = DropoutOp::create(builder, getLoc(), grads[0], getSeed(), getStep(), getFirstRow(),
                             getStream(), getRateAttr());
}
void DropoutOp::makeDeterministic() {
  replaceAllUsesWith(getInput());
  erase();
}
void BroadcastOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                MutableArrayRef<Value> out) {
  out[0] = sumToType(builder, getLoc(), grads[0], getInput().getType());
}

//===-- Folders
//----------------------------------------------------------------------------------===//

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 0.0) ? OpFoldResult(getLhs()) : OpFoldResult();
}
OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  return isSplat(adaptor.getRhs(), 1.0) ? OpFoldResult(getLhs()) : OpFoldResult();
}
OpFoldResult NegOp::fold(FoldAdaptor) {
  if (auto inner = getInput().getDefiningOp<NegOp>())
    return inner.getInput();
  return {};
}
OpFoldResult ScaleOp::fold(FoldAdaptor) {
  return getFactor().isExactlyValue(1.0) ? OpFoldResult(getInput()) : OpFoldResult();
}
OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getInput().getType() == getType() ? OpFoldResult(getInput()) : OpFoldResult();
}
OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
FusionRole ConstantOp::getFusionRole() { return FusionRole::constant; }

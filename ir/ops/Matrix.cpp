// Matrix products, attention, rope and embeddings: backwards, costs and what fusion asks.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

//===-- matmul
//-----------------------------------------------------------------------------------===//

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs, Value rhs,
                     bool transposeLhs, bool transposeRhs, bool tf32) {
  auto left = cast<RankedTensorType>(lhs.getType()), right = cast<RankedTensorType>(rhs.getType());
  SmallVector<int64_t> shape(left.getShape());
  size_t rank = shape.size();
  shape[rank - 2] = left.getShape()[transposeLhs ? rank - 1 : rank - 2];
  shape[rank - 1] = right.getShape()[transposeRhs ? rank - 2 : rank - 1];
  build(builder, state, RankedTensorType::get(shape, left.getElementType()), lhs, rhs,
        /*accumulator=*/Value(), /*lhs_scale=*/Value(), /*rhs_scale=*/Value(), transposeLhs,
        transposeRhs, tf32);
}

void MatmulOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                             MutableArrayRef<Value> out) {
  bool tl = getTransposeLhs(), tr = getTransposeRhs();
  // A product's operands are of one type: the gradient of a wider result is rounded to theirs.
  Value dy = castTo(builder, getLoc(), grads[0], getElementTypeOrSelf(getLhs()));
  auto product = [&](Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) -> Value {
    return MatmulOp::create(builder, getLoc(), lhs, rhs, transposeLhs, transposeRhs, getTf32());
  };
  out[0] = tl ? product(getRhs(), dy, tr, true) : product(dy, getRhs(), false, !tr);
  out[1] = tr ? product(dy, getLhs(), true, tl) : product(getLhs(), dy, !tl, false);
  if (getAccumulator())
    out[2] = grads[0];
}

int64_t MatmulOp::getFlops() {
  auto left = cast<RankedTensorType>(getLhs().getType());
  int64_t inner = left.getShape()[left.getRank() - (getTransposeLhs() ? 2 : 1)];
  return 2 * inner * cast<RankedTensorType>(getType()).getNumElements();
}
bool MatmulOp::isModelFlops() { return true; }
PrecisionClass MatmulOp::getPrecisionClass() { return PrecisionClass::low; }
void MatmulOp::roundInputs() { setTf32(true); }
bool MatmulOp::mayGiveFull(unsigned) { return !getAccumulator(); }
bool MatmulOp::takesFloat8() { return true; }
void MatmulOp::readQuantized(ValueRange values, ValueRange scales) {
  getLhsMutable().assign(values[0]);
  getRhsMutable().assign(values[1]);
  getLhsScaleMutable().assign(scales[0]);
  getRhsScaleMutable().assign(scales[1]);
}
void MatmulOp::readTransposed(unsigned operand, Value copy) {
  (operand == 0 ? getLhsMutable() : getRhsMutable()).assign(copy);
  operand == 0 ? setTransposeLhs(!getTransposeLhs()) : setTransposeRhs(!getTransposeRhs());
}
FusionRole MatmulOp::getFusionRole() { return FusionRole::library; }
int64_t MatmulOp::getAccumulatorOperand() { return getAccumulator() ? 2 : -1; }
int64_t MatmulOp::getInPlaceOperand(unsigned) { return getAccumulatorOperand(); }
bool MatmulOp::takesRowStride(unsigned, bool) { return true; }
/// Panels hold no scale, and one matrix.
OpOperand *MatmulOp::getPanelsOperand() {
  bool isPlain = !getRhsScale() && cast<RankedTensorType>(getRhs().getType()).getRank() == 2;
  return isPlain ? &getRhsMutable() : nullptr;
}
bool MatmulOp::absorbSum(unsigned, Value addend) {
  bool isNarrow = !cast<RankedTensorType>(getType()).getElementType().isF32();
  if (getAccumulator() || isNarrow || addend.getType() != getType())
    return false;
  getAccumulatorMutable().assign(addend);
  return true;
}

namespace {
/// A transpose read by a product becomes the product's own flag.
struct AbsorbTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    auto left = op.getLhs().getDefiningOp<TransposeOp>();
    auto right = op.getRhs().getDefiningOp<TransposeOp>();
    if (!left && !right)
      return rewriter.notifyMatchFailure(op, "no operand is a transpose");
    rewriter.modifyOpInPlace(op, [&] {
      if (left) {
        op.getLhsMutable().assign(left.getInput());
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (right) {
        op.getRhsMutable().assign(right.getInput());
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};

} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<AbsorbTranspose>(context);
}

int64_t PackPanelsOp::getFlops() { return 0; }

//===-- attention
//--------------------------------------------------------------------------------===//

namespace {
/// Pairs (query, key) that a head's mask lets through, over the whole batch and all heads. Where
/// documents end is known at run time only: a row counts as one.
template <typename Op> int64_t visiblePairs(Op op) {
  int64_t tokens = rowSpaceOf(op.getQuery().getType()).rows;
  int64_t batch = op.getBatch(), seq = tokens / batch, window = op.getWindow();
  int64_t pairs = 0;
  for (int64_t i = 0; i < seq; ++i) {
    int64_t last = op.getCausal() ? i : seq - 1;
    int64_t first = window > 0 ? std::max<int64_t>(0, i - window + 1) : 0;
    pairs += last - first + 1;
  }
  return pairs * batch * static_cast<int64_t>(op.getHeads());
}

template <typename Op> int64_t headDim(Op op) {
  return rowSpaceOf(op.getQuery().getType()).columns / static_cast<int64_t>(op.getHeads());
}
} // namespace

void AttentionOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                MutableArrayRef<Value> out) {
  auto grad = AttentionGradOp::create(
      builder, getLoc(), getQuery().getType(), getKey().getType(), getValue().getType(), getQuery(),
      getKey(), getValue(), getResult(), getLse(), grads[0], getFirstKey(), getSeed(), getStep(),
      getFirstRow(), getStream(), getBatchAttr(), getHeadsAttr(), getKvHeadsAttr(), getScaleAttr(),
      getCausalAttr(), getWindowAttr(), getDropoutAttr());
  out[0] = grad.getQueryGradient();
  out[1] = grad.getKeyGradient();
  out[2] = grad.getValueGradient();
}

void AttentionOp::makeDeterministic() {
  getSeedMutable().clear();
  getStepMutable().clear();
  getFirstRowMutable().clear();
  getStreamMutable().clear();
  setDropout(llvm::APFloat(0.0));
}

// Two products forward. Four backward: the recomputed scores are not model FLOPs.
int64_t AttentionOp::getFlops() { return 2 * 2 * visiblePairs(*this) * headDim(*this); }
int64_t AttentionGradOp::getFlops() { return 4 * 2 * visiblePairs(*this) * headDim(*this); }
bool AttentionOp::isModelFlops() { return true; }
bool AttentionGradOp::isModelFlops() { return true; }
PrecisionClass AttentionOp::getPrecisionClass() { return PrecisionClass::low; }
PrecisionClass AttentionGradOp::getPrecisionClass() { return PrecisionClass::low; }
bool AttentionOp::takesRowStride(unsigned index, bool isResult) {
  return isResult ? index == 0 : index < 3; // query, key, value
}
bool AttentionGradOp::takesRowStride(unsigned index, bool isResult) {
  return isResult || (index < 6 && index != 4); // all but lse and what makes the mask
}

//===-- rope
//-------------------------------------------------------------------------------------===//

void RopeOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = RopeOp::create(builder, getLoc(), getInput().getType(), grads[0], getCos(), getSin(),
                          getPositions(), getHeadsAttr(),
                          getInverse() ? UnitAttr() : builder.getUnitAttr());
}
int64_t RopeOp::getInPlaceOperand(unsigned) { return 0; }
bool RopeOp::takesRowStride(unsigned index, bool isResult) { return isResult || index == 0; }

//===-- embedding
//--------------------------------------------------------------------------------===//

void EmbeddingOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                MutableArrayRef<Value> out) {
  auto table = cast<RankedTensorType>(getTable().getType());
  Value sums = EmbeddingGradOp::create(builder, getLoc(), table.clone(builder.getF32Type()),
                                       getIndices(), grads[0], Value());
  out[1] = castTo(builder, getLoc(), sums, table.getElementType());
}
int64_t EmbeddingGradOp::getAccumulatorOperand() { return getAccumulator() ? 2 : -1; }
int64_t EmbeddingGradOp::getInPlaceOperand(unsigned) { return getAccumulatorOperand(); }
bool EmbeddingGradOp::absorbSum(unsigned, Value addend) {
  if (getAccumulator() || addend.getType() != getType())
    return false;
  getAccumulatorMutable().assign(addend);
  return true;
}

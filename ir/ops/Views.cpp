// Views: backwards, folders, and their part in fusion.
#include "ir/Nn.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

FusionRole ReshapeOp::getFusionRole() { return FusionRole::view; }
FusionRole SliceOp::getFusionRole() { return FusionRole::view; }
FusionRole ConcatOp::getFusionRole() { return FusionRole::view; }
FusionRole TransposeOp::getFusionRole() { return FusionRole::view; }
FusionRole AfterOp::getFusionRole() { return FusionRole::view; }

//===-- places in memory

bool AfterOp::takesRowStride(unsigned, bool) { return true; }
bool SliceOp::takesRowStride(unsigned, bool) { return true; }
bool TransposeOp::takesRowStride(unsigned, bool) { return true; }
/// Only rows may be regrouped.
bool ReshapeOp::takesRowStride(unsigned, bool) {
  return rowSpaceOf(getInput().getType()).columns == rowSpaceOf(getType()).columns;
}
bool ConcatOp::takesRowStride(unsigned, bool isResult) { return !isResult; }

FailureOr<Place> SliceOp::getPlace(int64_t rowStride) {
  auto wide = cast<RankedTensorType>(getInput().getType());
  auto offset = static_cast<int64_t>(getOffset());
  int64_t stride = rowStride ? rowStride : wide.getShape().back();
  if (!getRows())
    return Place{offset, stride};
  if (wide.getRank() == 1)
    return Place{offset, rowStride};
  int64_t rowsOfEntry = rowSpaceOf(wide).rows / wide.getShape().front();
  return Place{offset * rowsOfEntry * stride, rowStride};
}

FailureOr<Place> TransposeOp::getPlace(int64_t) {
  return emitOpError("expected a matrix product to absorb this transpose; give the product "
                     "that reads it transpose_lhs or transpose_rhs");
}

Place ConcatOp::getPartPlace(unsigned operand) {
  Place place;
  for (Value input : getInputs().take_front(operand)) {
    auto type = cast<RankedTensorType>(input.getType());
    place.offset += getRows() ? type.getNumElements() : type.getShape().back();
  }
  if (!getRows())
    place.rowStride = cast<RankedTensorType>(getType()).getShape().back();
  return place;
}

//===-- backwards and folders

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

namespace {
/// Inputs of a concat that are taken away from the front; zeros in parts, too.
class Segments {
public:
  explicit Segments(ConcatOp op) : left(op.getInputs()), rows(op.getRows()) {}

  bool empty() const { return left.empty(); }
  Value front() const { return left.front(); }
  bool isZero() const {
    DenseElementsAttr elements;
    return matchPattern(front(), m_Constant(&elements)) && elements.isSplat() &&
           elements.getSplatValue<APFloat>().isZero();
  }
  /// Of the front, along the dimension that is joined.
  int64_t size() const {
    auto type = cast<RankedTensorType>(front().getType());
    return type.getDimSize(dimensionOf(type, rows)) - taken;
  }
  void take(int64_t count) {
    taken += count;
    if (size() == 0) {
      taken = 0;
      left = left.drop_front();
    }
  }

private:
  OperandRange left;
  bool rows;
  int64_t taken = 0; ///< of the front
};

/// Sums of concats each of which is zero where the other is not are one concat: the gradients of
/// slices then need neither zeros nor sums.
struct JoinPaddedSums : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    auto left = op.getLhs().getDefiningOp<ConcatOp>();
    auto right = op.getRhs().getDefiningOp<ConcatOp>();
    if (!left || !right || left.getType() != right.getType() || left.getRows() != right.getRows())
      return rewriter.notifyMatchFailure(op, "no sum of two like concats");
    SmallVector<Value> parts;
    for (Segments x(left), y(right); !x.empty();) {
      if (!y.isZero())
        std::swap(x, y); // all of x's front is a part, but zeros, of which some may be
      int64_t count = x.isZero() ? std::min(x.size(), y.size()) : x.size();
      if (!y.isZero() || y.size() < count)
        return rewriter.notifyMatchFailure(op, "parts that overlap");
      parts.push_back(x.isZero() ? zeros(rewriter, op, count, left.getRows()) : x.front());
      x.take(count);
      y.take(count);
    }
    rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, left.getRows());
    return success();
  }

private:
  static Value zeros(PatternRewriter &rewriter, AddOp op, int64_t count, bool rows) {
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dimensionOf(type, rows)] = count;
    return splat(rewriter, op.getLoc(), RankedTensorType::get(shape, type.getElementType()), 0);
  }
};
} // namespace

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<JoinPaddedSums>(context);
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

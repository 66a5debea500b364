// Casts between element types: body, backward, and how they fold into what they read.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using RowBuilder = row::Builder;
using row::NodeId;

void CastOp::buildRow(RowBuilder &, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                      MutableArrayRef<NodeId> out) {
  out[0] = in[0]; // the cluster rounds what an op gives to its type
}

void CastOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = CastOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}

Value CastOp::getOriginal() { return getInput(); }
std::optional<StringRef> CastOp::getCopyPart() { return ""; }

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  // Widening and narrowing again gives the value back; the reverse rounds.
  auto inner = getInput().getDefiningOp<CastOp>();
  auto width = [](Type type) { return cast<RankedTensorType>(type).getElementTypeBitWidth(); };
  if (inner && inner.getInput().getType() == getType() && width(inner.getType()) > width(getType()))
    return inner.getInput();
  return {};
}

namespace {

/// A result that is only widened to f32 is given in f32, where its sums are f32 anyway.
struct WidenResult : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CastOp op, PatternRewriter &rewriter) const override {
    auto result = dyn_cast<OpResult>(op.getInput());
    auto producer = result ? dyn_cast<PrecisionOpInterface>(result.getOwner()) : nullptr;
    if (!producer || !result.hasOneUse() || !getElementTypeOrSelf(op.getType()).isF32() ||
        !producer.mayGiveFull(result.getResultNumber()))
      return rewriter.notifyMatchFailure(op, "no sum in f32 that only this cast reads");
    rewriter.modifyOpInPlace(producer, [&] { result.setType(op.getType()); });
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void CastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<WidenResult>(context);
}

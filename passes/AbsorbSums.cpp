// Lets a matrix product or a scatter add to what is there instead of writing a tensor to be added.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_ABSORBSUMSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// add(x, y) with y the only use of an op that can add to x as it writes.
struct AbsorbSum : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp op, PatternRewriter &rewriter) const override {
    if (op.getLhs().getType() != op.getRhs().getType())
      return rewriter.notifyMatchFailure(op, "one side broadcasts");
    for (auto [addend, sum] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}})
      if (succeeded(absorb(op, addend, sum, rewriter)))
        return success();
    return rewriter.notifyMatchFailure(op, "no side is an op that can absorb the other");
  }

  static LogicalResult absorb(AddOp op, Value addend, Value sum, PatternRewriter &rewriter) {
    Operation *producer = sum.getDefiningOp();
    auto fusion = dyn_cast_or_null<FusionOpInterface>(producer);
    // The addend must die here, or adding in place would need a copy of it first.
    if (!fusion || !sum.hasOneUse() || !addend.hasOneUse() ||
        producer->getBlock() != op->getBlock())
      return failure();
    Operation *source = addend.getDefiningOp();
    if (source && source->hasTrait<OpTrait::ConstantLike>())
      return failure();
    if (source &&
        (source->getBlock() != producer->getBlock() || !source->isBeforeInBlock(producer)))
      return failure();
    if (!source && !isa<MicrobatchesOp>(cast<BlockArgument>(addend).getOwner()->getParentOp()))
      return failure(); // a function's argument is not ours to overwrite
    bool absorbed = false;
    rewriter.modifyOpInPlace(producer, [&] {
      absorbed = fusion.absorbSum(cast<OpResult>(sum).getResultNumber(), addend);
    });
    if (!absorbed)
      return failure();
    rewriter.replaceOp(op, sum);
    return success();
  }
};

class AbsorbSumsPass : public gradc::impl::AbsorbSumsPassBase<AbsorbSumsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<AbsorbSum>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

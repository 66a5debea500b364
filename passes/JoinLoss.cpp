// Makes one op of the head's matrix product and the cross-entropy that reads it.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_JOINLOSSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// cross_entropy(matmul(input, weight)), the logits having no other use.
struct JoinLoss : OpRewritePattern<CrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CrossEntropyOp op, PatternRewriter &rewriter) const override {
    auto product = op.getLogits().getDefiningOp<MatmulOp>();
    if (!product)
      return rewriter.notifyMatchFailure(op, "the logits are no matrix product");
    if (!product->hasOneUse() || !op.getLse().use_empty())
      return rewriter.notifyMatchFailure(op, "the logits or their statistics are read elsewhere");
    if (product.getTransposeLhs() || product.getAccumulator())
      return rewriter.notifyMatchFailure(op, "the logits are not rows times a weight");
    if (getElementTypeOrSelf(product.getType()) != getElementTypeOrSelf(product.getLhs()))
      return rewriter.notifyMatchFailure(op, "the logits are wider than what they are made of");
    auto perRow = RankedTensorType::get({rowSpaceOf(product.getType()).rows, 1},
                                        Float32Type::get(op.getContext()));
    if (op.getLoss().getType() != perRow)
      return rewriter.notifyMatchFailure(op, "the loss is no column of f32");
    auto joined = LinearCrossEntropyOp::create(rewriter, product.getLoc(), perRow, product.getLhs(),
                                               product.getRhs(), op.getTargets(),
                                               product.getTransposeRhs(), product.getTf32());
    rewriter.replaceAllUsesWith(op.getLoss(), joined.getLoss());
    rewriter.eraseOp(op);
    rewriter.eraseOp(product);
    return success();
  }
};

class JoinLossPass : public gradc::impl::JoinLossPassBase<JoinLossPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<JoinLoss>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

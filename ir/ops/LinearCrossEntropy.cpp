// The loss of a matrix product's rows: backward, costs, and how forward and backward share logits.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

template <typename Op> RowSpace logitsSpace(Op op) {
  RowSpace weight = rowSpaceOf(op.getWeight().getType());
  return {rowSpaceOf(op.getInput().getType()).rows,
          op.getTransposeWeight() ? weight.rows : weight.columns};
}

/// FLOPs of one product of the logits' rows, columns and the features.
template <typename Op> int64_t productFlops(Op op) {
  RowSpace logits = logitsSpace(op);
  return 2 * logits.rows * logits.columns * rowSpaceOf(op.getInput().getType()).columns;
}

} // namespace

RowSpace LinearCrossEntropyOp::getLogitsSpace() { return logitsSpace(*this); }
RowSpace LinearCrossEntropyGradOp::getLogitsSpace() { return logitsSpace(*this); }

int64_t LinearCrossEntropyOp::getFlops() { return productFlops(*this); }
int64_t LinearCrossEntropyGradOp::getFlops() { return 3 * productFlops(*this); }
bool LinearCrossEntropyOp::isModelFlops() { return true; }
bool LinearCrossEntropyGradOp::isModelFlops() { return true; }

PrecisionClass LinearCrossEntropyOp::getPrecisionClass() { return PrecisionClass::low; }
PrecisionClass LinearCrossEntropyGradOp::getPrecisionClass() { return PrecisionClass::low; }
bool LinearCrossEntropyOp::givesFull() { return true; }
bool LinearCrossEntropyGradOp::givesFull() { return true; }
bool LinearCrossEntropyGradOp::mayGiveFull(unsigned) { return true; }
void LinearCrossEntropyOp::roundInputs() { setTf32(true); }
void LinearCrossEntropyGradOp::roundInputs() { setTf32(true); }

void LinearCrossEntropyOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                         MutableArrayRef<Value> out) {
  auto backward = LinearCrossEntropyGradOp::create(
      builder, getLoc(), getInput().getType(), getWeight().getType(), getLoss().getType(), grads[0],
      getInput(), getWeight(), getTargets(), Value(), getTransposeWeight(), getTf32());
  out[0] = backward.getInputGradient();
  out[1] = backward.getWeightGradient();
}

bool LinearCrossEntropyGradOp::absorbSum(unsigned result, Value addend) {
  constexpr unsigned weightGradient = 1;
  bool isF32 = getElementTypeOrSelf(addend).isF32();
  if (result != weightGradient || getAccumulator() || !isF32 ||
      addend.getType() != getWeightGradient().getType())
    return false;
  getAccumulatorMutable().assign(addend);
  return true;
}

namespace {

/// The backward of the same loss, or null.
LinearCrossEntropyGradOp backwardOf(LinearCrossEntropyOp op) {
  for (Operation *user : op.getInput().getUsers()) {
    auto backward = dyn_cast<LinearCrossEntropyGradOp>(user);
    if (backward && backward->getBlock() == op->getBlock() &&
        backward.getInput() == op.getInput() && backward.getWeight() == op.getWeight() &&
        backward.getTargets() == op.getTargets() &&
        backward.getTransposeWeight() == op.getTransposeWeight() &&
        backward.getTf32() == op.getTf32() && backward.getLoss().getType() == op.getType())
      return backward;
  }
  return {};
}

/// Where a step has the backward in any case, it gives the loss: the logits are computed once.
struct TakeLossFromBackward : OpRewritePattern<LinearCrossEntropyOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(LinearCrossEntropyOp op, PatternRewriter &rewriter) const override {
    LinearCrossEntropyGradOp backward = backwardOf(op);
    if (!backward || !op->isBeforeInBlock(backward))
      return rewriter.notifyMatchFailure(op, "no backward of the same loss follows");
    SmallVector<Operation *> waiting = readersBefore(op, backward);
    if (llvm::any_of(waiting, [&](Operation *reader) {
          return !isMemoryEffectFree(reader) || reader->isAncestor(backward);
        }))
      return rewriter.notifyMatchFailure(op, "the gradient depends on the loss");
    for (Operation *reader : llvm::reverse(waiting))
      rewriter.moveOpAfter(reader, backward);
    rewriter.replaceOp(op, backward.getLoss());
    return success();
  }

  /// Ops up to and including `last` that depend on `op`, in order.
  static SmallVector<Operation *> readersBefore(Operation *op, Operation *last) {
    SmallVector<Operation *> readers;
    DenseSet<Operation *> dependent{op};
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
      bool reads = false;
      next->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          reads |= dependent.contains(operand.getDefiningOp());
      });
      if (reads) {
        dependent.insert(next);
        readers.push_back(next);
      }
      if (next == last)
        break;
    }
    return readers;
  }
};

} // namespace

void LinearCrossEntropyOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                       MLIRContext *context) {
  patterns.add<TakeLossFromBackward>(context);
}

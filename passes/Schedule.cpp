// Orders the commands so that buffers die early.
#include "passes/Passes.h"

namespace gradc {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// True when delaying the op keeps nothing alive for longer: its operands live for the whole step.
bool holdsNothing(Operation *op) {
  return llvm::all_of(op->getOperands(), [](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return !producer || producer->hasTrait<OpTrait::ConstantLike>();
  });
}

/// The first op of the block that uses a result of `op`, or null.
Operation *firstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (inBlock && (!first || inBlock->isBeforeInBlock(first)))
      first = inBlock;
  }
  return first;
}

class SchedulePass : public gradc::impl::SchedulePassBase<SchedulePass> {
  void runOnOperation() override {
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](MicrobatchesOp loop) { blocks.push_back(&loop.getBody().front()); });
    for (Block *block : blocks) {
      // From the end, so that a sunk op's own operands can follow it.
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block))) {
        if (op.hasTrait<OpTrait::IsTerminator>() || isa<MicrobatchesOp>(op))
          continue;
        if (Operation *user = firstUser(&op); user && holdsNothing(&op))
          op.moveBefore(user);
      }
    }
  }
};

} // namespace

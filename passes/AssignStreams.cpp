// Puts commands that no other waits for on a stream of their own.
#include "passes/Passes.h"
#include "passes/memory/JoinedLaunches.h"
#include "passes/memory/Streams.h"

namespace gradc {
#define GEN_PASS_DEF_ASSIGNSTREAMSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

class AssignStreamsPass : public gradc::impl::AssignStreamsPassBase<AssignStreamsPass> {
  void runOnOperation() override {
    assign(getOperation().getBody().front());
    getOperation().walk([&](MicrobatchesOp loop) { assign(loop.getBody().front()); });
  }

  /// From the end, so that the streams of all readers are known.
  void assign(Block &block) {
    SmallVector<Operation *> launch; // the commands of one, the last of them first
    for (Operation &op : llvm::reverse(block)) {
      if (!isCommand(op))
        continue;
      IntegerAttr group = joinedGroup(&op);
      if (!launch.empty() && !(group && group == joinedGroup(launch.back())))
        finish(launch);
      launch.push_back(&op);
    }
    finish(launch);
  }

  void finish(SmallVectorImpl<Operation *> &launch) {
    if (launch.empty())
      return;
    // What ends a block needs all that is in it.
    Operation *last = lastBeside(launch.front());
    auto stream = IntegerAttr::get(IntegerType::get(&getContext(), 64), 1);
    if (isCommand(*last) &&
        llvm::none_of(launch, [&](Operation *op) { return isNeededBy(op, last); }))
      for (Operation *op : launch)
        op->setAttr(streamAttr, stream);
    launch.clear();
  }

  /// Whether stream 0, up to and with `last`, reads a result of `op`, be it through a view.
  static bool isNeededBy(Operation *op, Operation *last) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
      if (!inBlock || last->isBeforeInBlock(inBlock))
        return false;
      return isCommand(*inBlock) ? assignedStream(inBlock) == 0 : isNeededBy(inBlock, last);
    });
  }
};

} // namespace

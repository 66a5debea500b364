// When each op of a program runs and each value is needed for the last time.
#include "passes/memory/Lifetimes.h"
#include "passes/memory/JoinedLaunches.h"

using namespace mlir;
using namespace gradc;

Lifetimes::Lifetimes(func::FuncOp function) {
  number(function.getBody().front());
  last = indices.lookup(function.getBody().front().getTerminator());
}

void Lifetimes::number(Block &block) {
  for (Operation &op : block) {
    IntegerAttr group = joinedGroup(&op);
    Operation *before = op.getPrevNode();
    bool joins = group && before && joinedGroup(before) == group; // it runs when that one does
    indices[&op] = joins ? indices.lookup(before) : last++;
    if (auto loop = dyn_cast<nn::MicrobatchesOp>(op))
      number(loop.getBody().front());
  }
}

int64_t Lifetimes::loopEnd(nn::MicrobatchesOp loop) const {
  return index(loop.getBody().front().getTerminator());
}

int64_t Lifetimes::lastUse(Value value) const {
  Block *home = value.getParentBlock();
  int64_t latest = value.getDefiningOp() ? index(value.getDefiningOp())
                                         : index(&value.getParentBlock()->front());
  for (Operation *user : value.getUsers()) {
    Operation *inHome = home->findAncestorOpInBlock(*user);
    auto loop = dyn_cast<nn::MicrobatchesOp>(inHome);
    bool inside = loop && inHome != user;
    // A loop reads its sliced operands throughout.
    bool sliced = loop && llvm::is_contained(loop.getSliced(), value);
    latest = std::max(latest, inside || sliced ? loopEnd(loop) : index(inHome));
  }
  return latest;
}

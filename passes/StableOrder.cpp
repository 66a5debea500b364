// See StableOrder.h.
#include "passes/StableOrder.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <queue>

using namespace mlir;

namespace gradc {

namespace {

/// Ops of the block that `op`, with all that is in it, reads from.
llvm::SetVector<Operation *> producersOf(Operation &op, Block &block) {
  llvm::SetVector<Operation *> producers;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && producer->getBlock() == &block)
        producers.insert(producer);
  });
  producers.remove(&op);
  return producers;
}

} // namespace

void sortStably(Block &block) {
  llvm::SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, size_t> position;
  for (Operation &op : block.without_terminator()) {
    position[&op] = ops.size();
    ops.push_back(&op);
  }
  llvm::SmallVector<llvm::SmallVector<size_t>> readers(ops.size());
  llvm::SmallVector<size_t> waiting(ops.size());
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (auto [i, op] : llvm::enumerate(ops)) {
    auto producers = producersOf(*op, block);
    waiting[i] = producers.size();
    for (Operation *producer : producers)
      readers[position[producer]].push_back(i);
    if (producers.empty())
      ready.push(i);
  }
  while (!ready.empty()) {
    size_t first = ready.top();
    ready.pop();
    ops[first]->moveBefore(block.getTerminator());
    for (size_t reader : readers[first])
      if (--waiting[reader] == 0)
        ready.push(reader);
  }
}

} // namespace gradc

// Marks the commands that one launch in parts computes.
#include "passes/Passes.h"
#include "passes/memory/JoinedLaunches.h"
#include "passes/memory/KernelSignature.h"
#include "passes/memory/Streams.h"

#include <map>

namespace gradc {
#define GEN_PASS_DEF_JOINLAUNCHESPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// Products are the library's, or too large to gain.
bool mayJoin(Operation *op) {
  return cast<FusionOpInterface>(op).getFusionRole() != FusionRole::library;
}

class JoinLaunchesPass : public gradc::impl::JoinLaunchesPassBase<JoinLaunchesPass> {
public:
  explicit JoinLaunchesPass(const KernelLibrary &library) : library(library) {}
  JoinLaunchesPass(const JoinLaunchesPass &other)
      : JoinLaunchesPassBase(other), library(other.library) {}

private:
  void runOnOperation() override {
    SmallVector<Block *> blocks{&getOperation().getBody().front()};
    getOperation().walk([&](MicrobatchesOp loop) { blocks.push_back(&loop.getBody().front()); });
    for (Block *block : blocks) {
      delayFolds(*block);
      for (const SmallVector<Operation *> &run : runsOf(*block))
        join(run);
    }
  }

  std::string signatureOf(Operation *op) {
    SmallVector<int64_t> contiguous(op->getNumOperands() + op->getNumResults(), 0);
    return kernelSignature(library, op, {contiguous, {}});
  }

  /// Commands that read next to nothing beside what was read to make it (the partial sums of a
  /// bias's gradient) wait for the last of their kernel, if what needs them is behind it.
  void delayFolds(Block &block) {
    std::map<std::string, Operation *> last;
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!isCommand(op) || !mayJoin(&op) || !readsLittle(&op))
        continue;
      auto [entry, isLast] = last.try_emplace(signatureOf(&op), &op);
      Operation *target = entry->second;
      bool mayWait = llvm::all_of(op.getUsers(), [&](Operation *user) {
        Operation *inBlock = block.findAncestorOpInBlock(*user);
        return inBlock && target->isBeforeInBlock(inBlock);
      });
      if (!isLast && mayWait)
        op.moveBefore(target);
    }
  }

  static bool readsLittle(Operation *op) {
    constexpr int64_t little = 32;
    if (op->getNumOperands() != 1)
      return false;
    Operation *producer = op->getOperand(0).getDefiningOp();
    if (!producer || !isCommand(*producer))
      return false;
    int64_t most = 0;
    for (Value operand : producer->getOperands())
      most = std::max(most, byteSize(operand.getType()));
    return little * byteSize(op->getOperand(0).getType()) <= most;
  }

  /// Commands that follow one another and of which none needs another. Views and constants between
  /// them move in front.
  static std::vector<SmallVector<Operation *>> runsOf(Block &block) {
    std::vector<SmallVector<Operation *>> runs(1);
    for (Operation &op : llvm::make_early_inc_range(block)) {
      SmallVector<Operation *> &run = runs.back();
      bool isAlone = op.getNumRegions() > 0 && !isCommand(op);
      bool needsRun = llvm::any_of(op.getOperands(), [&](Value operand) {
        return llvm::is_contained(run, operand.getDefiningOp());
      });
      if (!run.empty() && (needsRun || isAlone || op.hasTrait<OpTrait::IsTerminator>()))
        runs.emplace_back();
      else if (!run.empty() && !isCommand(op))
        op.moveBefore(run.front());
      if (isCommand(op))
        runs.back().push_back(&op);
    }
    return runs;
  }

  /// Brings equal kernels of a run together, each behind the last of them.
  void join(ArrayRef<Operation *> run) {
    std::map<std::string, SmallVector<Operation *>> kernels;
    for (Operation *op : run)
      if (mayJoin(op))
        kernels[signatureOf(op)].push_back(op);
    for (auto &[signature, ops] : kernels) {
      if (ops.size() < 2)
        continue;
      auto number = IntegerAttr::get(IntegerType::get(&getContext(), 64), groups++);
      for (Operation *op : ops) {
        if (op != ops.back())
          op->moveBefore(ops.back());
        op->setAttr(joinedAttr, number);
      }
    }
  }

  const KernelLibrary &library;
  int64_t groups = 0;
};

} // namespace

std::unique_ptr<Pass> gradc::createJoinLaunchesPass(const KernelLibrary &library) {
  return std::make_unique<JoinLaunchesPass>(library);
}

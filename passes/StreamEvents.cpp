// Orders the streams of planned programs by events.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/streams/EventOrder.h"

namespace gradc {
#define GEN_PASS_DEF_STREAMEVENTSPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;

namespace {

class StreamEventsPass : public gradc::impl::StreamEventsPassBase<StreamEventsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<exec::ProgramOp>()) {
      if (hasEvents(program)) {
        program.emitError("expected a program without events: it was ordered already");
        return signalPassFailure();
      }
      int64_t events = orderBlock(program.getBody().front());
      if (program.getSymName() == "train_step")
        explain(getOperation(), "streams", lineOf(program, events));
    }
  }

  static bool hasEvents(exec::ProgramOp program) {
    return program
        .walk([](Operation *op) {
          return isa<exec::RecordOp, exec::WaitOp>(op) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// The regions of a block, one after another. Returns the number of events.
  static int64_t orderBlock(Block &block) {
    int64_t events = 0;
    SmallVector<Operation *> commands;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      auto loop = dyn_cast<exec::RepeatOp>(op);
      if (!loop) {
        commands.push_back(&op);
        continue;
      }
      events += streams::EventOrder(commands, block, loop).insert();
      events += orderBlock(loop.getBody().front());
      commands.clear();
    }
    return events + streams::EventOrder(commands, block, /*end=*/nullptr).insert();
  }

  std::string lineOf(exec::ProgramOp program, int64_t events) {
    int64_t first = 0, others = 0;
    program.walk([&](Operation *op) {
      if (isa<exec::LaunchOp, exec::GemmOp>(op))
        ++(streams::streamOfCommand(op) == 0 ? first : others);
    });
    return std::to_string(first) + " commands on stream 0, " + std::to_string(others) +
           " on stream 1, " + std::to_string(events) + " events; " + cost();
  }

  /// What the second stream takes of the arena, as the memory plan counted it.
  std::string cost() {
    auto plan = getOperation()->getAttrOfType<DictionaryAttr>("gradc.plan");
    auto bytes = [&](StringRef name) {
      auto number = plan ? plan.getAs<IntegerAttr>(name) : IntegerAttr();
      return number ? number.getInt() : 0;
    };
    int64_t more = bytes("arena_bytes") - bytes("one_stream_arena_bytes");
    return more > 0 ? "the arena is " + mebibytes(more) + " larger than with --streams 1"
                    : "the arena is no larger than with --streams 1";
  }
};

} // namespace

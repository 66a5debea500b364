// Checks a planned module that was read from a file.
#include "ir/Exec.h"
#include "passes/Passes.h"

#include <limits>
#include <map>

namespace gradc {
#define GEN_PASS_DEF_CHECKPLANPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;

namespace {

/// What a program may have of streams; a plan has two.
constexpr int64_t mostStreams = 8;
/// What a launch may have of tasks, on every target.
constexpr int64_t mostTasks = std::numeric_limits<int32_t>::max();

class CheckPlanPass : public gradc::impl::CheckPlanPassBase<CheckPlanPass> {
  void runOnOperation() override {
    auto plan = getOperation()->getAttrOfType<DictionaryAttr>("gradc.plan");
    for (auto [space, name] : {std::pair(exec::Space::State, "state_bytes"),
                               {exec::Space::Arena, "arena_bytes"},
                               {exec::Space::Constant, "constant_bytes"}}) {
      auto size = plan ? plan.getAs<IntegerAttr>(name) : IntegerAttr();
      if (!size || size.getInt() < 0) {
        getOperation().emitError("expected a plan with its ") << name;
        return signalPassFailure();
      }
      sizes[space] = size.getInt();
    }
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      if (failed(checkBlock(program.getBody().front(), /*rounds=*/1)))
        return signalPassFailure();
  }

  LogicalResult checkBlock(Block &block, int64_t rounds) {
    for (Operation &op : block) {
      if (auto loop = dyn_cast<exec::RepeatOp>(op)) {
        if (static_cast<int64_t>(loop.getCount()) < 1)
          return op.emitError("expected a count of 1 or more, got: ") << loop.getCount();
        if (failed(checkBlock(loop.getBody().front(), static_cast<int64_t>(loop.getCount()))))
          return failure();
      } else if (failed(checkNumbers(op)) || failed(checkBuffers(op, rounds))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult checkNumbers(Operation &op) {
    auto stream = op.getAttrOfType<IntegerAttr>("stream");
    if (stream && (stream.getInt() < 0 || stream.getInt() >= mostStreams))
      return op.emitError("expected a stream from 0 to ") << mostStreams - 1;
    // As many events as commands would do for any program.
    auto event = op.getAttrOfType<IntegerAttr>("event");
    if (event && (event.getInt() < 0 || event.getInt() >= mostEvents()))
      return op.emitError("expected an event below the number of commands, ") << mostEvents();
    auto launch = dyn_cast<exec::LaunchOp>(op);
    if (!launch)
      return success();
    auto kernel = getOperation().lookupSymbol<exec::KernelOp>(launch.getKernel());
    if (!kernel)
      return op.emitError("expected a kernel of the module, got: @") << launch.getKernel();
    // Signed, whatever the accessors say.
    auto extent = static_cast<int64_t>(launch.getExtent());
    auto tasks = static_cast<int64_t>(launch.getTasks());
    if (extent < 1 || tasks < 1 || tasks > mostTasks)
      return op.emitError("expected an extent and tasks of 1 or more");
    size_t parts = launch.getParts() ? launch.getParts()->size() : 1;
    if (parts == 0 || launch.getBuffers().size() % parts != 0)
      return op.emitError("expected as many buffers of each part");
    return success();
  }

  int64_t mostEvents() {
    if (commands == 0)
      getOperation().walk([&](Operation *) { ++commands; });
    return commands;
  }

  /// Every buffer that an attribute of the command names, however deep.
  LogicalResult checkBuffers(Operation &op, int64_t rounds) {
    LogicalResult result = success();
    op.getAttrDictionary().walk([&](exec::BufferAttr buffer) {
      int64_t size = sizes[buffer.getSpace()], step = buffer.getLoopStride();
      bool fits = buffer.getOffset() >= 0 && buffer.getBytes() >= 0 && step >= 0 &&
                  buffer.getBytes() <= size && buffer.getOffset() <= size - buffer.getBytes() &&
                  step <= (size - buffer.getBytes() - buffer.getOffset()) /
                              std::max<int64_t>(rounds - 1, 1);
      if (!fits && succeeded(result))
        result = op.emitError("expected a buffer inside of the ")
                 << exec::stringifySpace(buffer.getSpace()) << ", which has " << size
                 << " bytes; got: " << buffer;
    });
    return result;
  }

  std::map<exec::Space, int64_t> sizes;
  int64_t commands = 0;
};

} // namespace

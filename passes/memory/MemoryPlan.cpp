// The pass that places every buffer and lowers the programs to exec commands.
#include "ir/Explanation.h"
#include "passes/Passes.h"
#include "passes/memory/EmitExec.h"
#include "passes/memory/PeakTable.h"
#include "passes/planner/Planner.h"
#include "passes/planner/Validator.h"
#include "passes/recompute/Rematerialise.h"

namespace gradc {
#define GEN_PASS_DEF_MEMORYPLANPASS
#include "passes/Passes.h.inc"
} // namespace gradc

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;

namespace {

/// FLOPs of one program that count towards MFU.
struct ModelFlops {
  int64_t all = 0;
  int64_t matmul = 0;
};

ModelFlops countFlops(func::FuncOp function) {
  ModelFlops flops;
  function.walk([&](CostOpInterface op) {
    if (!op.isModelFlops() || op->hasAttr(recompute::recomputedAttr))
      return;
    int64_t times = 1;
    if (auto loop = op->getParentOfType<MicrobatchesOp>())
      times = cast<RankedTensorType>(loop.getSliced().front().getType()).getShape().front();
    flops.all += times * op.getFlops();
    auto fusion = dyn_cast<FusionOpInterface>(op.getOperation());
    if (fusion && fusion.getFusionRole() == FusionRole::library)
      flops.matmul += times * op.getFlops();
  });
  return flops;
}

class MemoryPlanPass : public gradc::impl::MemoryPlanPassBase<MemoryPlanPass> {
public:
  explicit MemoryPlanPass(const KernelLibrary &library) : library(library) {}
  MemoryPlanPass(const MemoryPlanPass &other) : MemoryPlanPassBase(other), library(other.library) {}

private:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    std::vector<ProgramStorage> programs;
    for (func::FuncOp function : functions) {
      if (failed(requireSlots(function)))
        return signalPassFailure();
      FailureOr<ProgramStorage> program = assignStorage(function, state, constants, library);
      if (failed(program) || failed(planArena(*program)))
        return signalPassFailure();
      programs.push_back(std::move(*program));
    }
    ExecEmitter emitter(module, library, state);
    for (ProgramStorage &program : programs)
      emitter.emit(program);
    attachPlan(module, programs);
    programs.clear(); // their scratch ops refer to nothing in the functions, which go now
    for (func::FuncOp function : functions)
      function.erase();
  }

  static LogicalResult requireSlots(func::FuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (!function.getArgAttr(i, "nn.slot"))
        return function.emitOpError("expected nn.slot on argument ")
               << i << "; run the training-step pass first";
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!function.getResultAttr(i, "nn.slot"))
        return function.emitOpError("expected nn.slot on result ")
               << i << "; run the training-step pass first";
    return success();
  }

  static std::vector<planner::Buffer> arenaBuffers(const ProgramStorage &program) {
    std::vector<planner::Buffer> buffers;
    for (const MemoryBuffer &buffer : program.buffers)
      if (buffer.space == Space::arena)
        buffers.push_back({buffer.size, buffer.lower, buffer.upper});
    return buffers;
  }

  LogicalResult planArena(ProgramStorage &program) {
    std::vector<planner::Buffer> buffers = arenaBuffers(program);
    std::vector<MemoryBuffer *> placed;
    for (MemoryBuffer &buffer : program.buffers)
      if (buffer.space == Space::arena)
        placed.push_back(&buffer);
    planner::Plan plan = planner::plan(buffers);
    if (!plan.error.empty())
      return program.function.emitError("memory plan: ") << plan.error;
    for (const std::string &violation : planner::validate(buffers, plan))
      return program.function.emitError("memory plan is invalid: ") << violation;
    for (auto [buffer, offset] : llvm::zip(placed, plan.offsets))
      buffer->offset = offset;
    arenaBytes = std::max(arenaBytes, plan.peak);
    lowerBound = std::max(lowerBound, plan.lowerBound);
    addWorkspace(program);
    FailureOr<int64_t> ofOne = program.hasStreams() ? peakOfOneStream(program.function) : plan.peak;
    if (failed(ofOne))
      return failure();
    oneStreamBytes = std::max(oneStreamBytes, *ofOne);
    return success();
  }

  /// What all streams together work in at one time.
  void addWorkspace(const ProgramStorage &program) {
    int64_t most = 0;
    for (const Command &command : program.commands())
      if (command.stream == 0)
        most = std::max(most, command.workspaceBytes);
    if (program.besideWorkspace >= 0)
      most += program.buffers[program.besideWorkspace].size;
    workspaceBytes = std::max(workspaceBytes, most);
  }

  /// The arena that a function would need if no command ran beside another.
  FailureOr<int64_t> peakOfOneStream(func::FuncOp function) {
    StateLayout stateOfOne = state;
    ConstantLayout constantsOfOne = constants;
    FailureOr<ProgramStorage> program =
        assignStorage(function, stateOfOne, constantsOfOne, library, /*streams=*/1);
    if (failed(program))
      return failure();
    planner::Plan plan = planner::plan(arenaBuffers(*program));
    if (!plan.error.empty())
      return function.emitError("memory plan of one stream: ") << plan.error;
    return plan.peak;
  }

  /// gradc.plan: what the executable's metadata says of memory and FLOPs.
  void attachPlan(ModuleOp module, ArrayRef<ProgramStorage> programs) {
    Builder b(module.getContext());
    auto number = [&](StringRef name, int64_t value) {
      return b.getNamedAttr(name, b.getI64IntegerAttr(value));
    };
    SmallVector<Attribute> slots, gradients, data;
    for (auto &[key, slot] : state.slots()) {
      SmallVector<NamedAttribute> entry(slot.slot.begin(), slot.slot.end());
      entry.push_back(b.getNamedAttr("type", TypeAttr::get(slot.type)));
      entry.push_back(number("offset", slot.offset));
      if (slot.parameter)
        entry.push_back(b.getNamedAttr("param", slot.parameter));
      slots.push_back(b.getDictionaryAttr(entry));
    }
    ModelFlops flops;
    for (const ProgramStorage &program : programs) {
      func::FuncOp function = program.function;
      if (function.getSymName() == "train_step") {
        flops = countFlops(function);
        for (StringRef topic : {"fusion", "loss"})
          copyExplanation(function, module, topic);
        explain(module, "memory", peakTable(program));
      }
      collectGradients(b, program, gradients);
    }
    for (auto &[value, offset] : constants.entries())
      data.push_back(
          b.getDictionaryAttr({number("offset", offset), b.getNamedAttr("value", value)}));
    module->setAttr(
        "gradc.plan",
        b.getDictionaryAttr(
            {number("state_bytes", state.bytes()), number("arena_bytes", arenaBytes),
             number("arena_lower_bound", lowerBound),
             number("one_stream_arena_bytes", oneStreamBytes),
             number("constant_bytes", constants.bytes()), number("workspace_bytes", workspaceBytes),
             number("flops", flops.all), number("matmul_flops", flops.matmul),
             b.getNamedAttr("slots", b.getArrayAttr(slots)),
             b.getNamedAttr("gradients", b.getArrayAttr(gradients)),
             b.getNamedAttr("constants", b.getArrayAttr(data))}));
  }

  static void collectGradients(Builder &b, const ProgramStorage &program,
                               SmallVectorImpl<Attribute> &gradients) {
    func::FuncOp function = program.function;
    for (auto [i, storage] : llvm::enumerate(program.returned)) {
      auto slot = function.getResultAttrOfType<DictionaryAttr>(i, "nn.slot");
      if (slot.getAs<StringAttr>("role").getValue() != "gradient")
        continue;
      int64_t offset = program.buffers[storage.buffer].offset + storage.offset;
      gradients.push_back(b.getDictionaryAttr(
          {b.getNamedAttr("name", slot.get("name")),
           b.getNamedAttr("offset", b.getI64IntegerAttr(offset)),
           b.getNamedAttr("type", TypeAttr::get(function.getResultTypes()[i]))}));
    }
  }

  const KernelLibrary &library;
  StateLayout state;
  ConstantLayout constants;
  int64_t arenaBytes = 0, lowerBound = 0, workspaceBytes = 0, oneStreamBytes = 0;
};

} // namespace

std::unique_ptr<Pass> gradc::createMemoryPlanPass(const KernelLibrary &library) {
  return std::make_unique<MemoryPlanPass>(library);
}

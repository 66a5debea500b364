// The order of the passes.
#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

using namespace gradc;
using mlir::func::FuncOp;

llvm::ArrayRef<PhaseInfo> gradc::phases() {
  static const PhaseInfo list[] = {
      {Phase::import, "import", "the model definition as a forward graph"},
      {Phase::precision, "precision", "the types that the mode computes in"},
      {Phase::autodiff, "autodiff", "the backward of the loss"},
      {Phase::recompute, "recompute", "what the backward computes again instead of keeping"},
      {Phase::trainingStep, "train-step", "accumulation, clipping and the optimizer in one graph"},
      {Phase::chunkLoss, "chunk-loss", "logits and loss a chunk of rows at a time"},
      {Phase::fusion, "fusion", "clusters of row ops, each one kernel"},
      {Phase::schedule, "schedule", "the order of the commands"},
      {Phase::memoryPlan, "memory-plan", "every buffer placed; the step as exec commands"},
      {Phase::codegen, "codegen", "kernels and step program as an object file"},
      {Phase::link, "link", "the executable"},
  };
  return list;
}

std::optional<Phase> gradc::findPhase(llvm::StringRef name) {
  for (const PhaseInfo &info : phases())
    if (info.name == name)
      return info.phase;
  return std::nullopt;
}

llvm::StringRef gradc::nameOf(Phase phase) { return phases()[static_cast<size_t>(phase)].name; }

void gradc::buildPhase(Phase phase, mlir::OpPassManager &passes, const Options &options,
                       const KernelLibrary &library) {
  switch (phase) {
  case Phase::precision: {
    PrecisionPassOptions precision;
    precision.mode = options.precision;
    precision.delayedScaling = options.float8Scaling == "delayed";
    passes.addPass(createPrecisionPass(precision));
    passes.addPass(mlir::createCanonicalizerPass());
    break;
  }
  case Phase::autodiff:
    passes.addNestedPass<FuncOp>(createJoinLossPass());
    passes.addPass(createAutodiffPass());
    passes.addPass(createQuantizeProductsPass(library));
    if (options.epilogues)
      passes.addPass(createNarrowBiasesPass(library));
    passes.addPass(mlir::createCanonicalizerPass());
    break;
  case Phase::recompute: {
    RecomputePassOptions recompute;
    recompute.mode = options.recompute;
    recompute.level = options.recomputeLevel;
    passes.addPass(createRecomputePass(recompute));
    break;
  }
  case Phase::trainingStep: {
    TrainingStepPassOptions step;
    step.optimizer = options.optimizer;
    step.gradAccum = options.gradAccum;
    step.scaleLoss = options.precision == "fp16";
    passes.addPass(createTrainingStepPass(step));
    passes.addPass(mlir::createCSEPass());
    passes.addPass(mlir::createCanonicalizerPass());
    passes.addNestedPass<FuncOp>(createAbsorbSumsPass());
    break;
  }
  case Phase::chunkLoss: {
    ChunkLossPassOptions chunks;
    chunks.rows = options.lossChunk;
    chunks.allowedRows = library.allowedLossChunkRows();
    passes.addNestedPass<FuncOp>(createChunkLossPass(chunks));
    if (options.weightPanels)
      passes.addPass(createWeightPanelsPass(library));
    break;
  }
  case Phase::fusion: {
    FusionPassOptions fusion;
    fusion.enable = options.fuse;
    if (options.epilogues)
      passes.addNestedPass<FuncOp>(createBiasGradientsPass(library));
    passes.addNestedPass<FuncOp>(createFusionPass(fusion));
    if (options.epilogues)
      passes.addNestedPass<FuncOp>(createProductEpiloguesPass(library));
    passes.addPass(mlir::createCSEPass());
    break;
  }
  case Phase::schedule:
    passes.addNestedPass<FuncOp>(createSchedulePass());
    passes.addNestedPass<FuncOp>(createJoinLaunchesPass(library));
    if (options.streams > 1)
      passes.addNestedPass<FuncOp>(createAssignStreamsPass());
    break;
  case Phase::memoryPlan:
    passes.addPass(createMemoryPlanPass(library));
    if (options.streams > 1) {
      passes.addPass(createStreamEventsPass());
      passes.addPass(createCheckStreamsPass());
    }
    break;
  case Phase::import:
  case Phase::codegen:
  case Phase::link:
    break;
  }
}

void gradc::buildPlanChecks(mlir::OpPassManager &passes) {
  passes.addPass(createCheckPlanPass());
  passes.addPass(createCheckStreamsPass());
}

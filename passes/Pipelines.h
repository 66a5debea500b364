// The order of the passes, as named phases that a compile can be dumped after, started from and
// stopped at, and the one struct of options that they read.
#pragma once

#include "ir/KernelLibrary.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace gradc {

enum class Phase {
  import,
  precision,
  autodiff,
  recompute,
  trainingStep,
  chunkLoss,
  fusion,
  schedule,
  memoryPlan,
  codegen,
  link
};

struct PhaseInfo {
  Phase phase;
  llvm::StringRef name; ///< as flags and files have it
  llvm::StringRef description;
};

/// All phases, in order.
llvm::ArrayRef<PhaseInfo> phases();
std::optional<Phase> findPhase(llvm::StringRef name);
llvm::StringRef nameOf(Phase phase);

/// Each chunk of the loss is a few commands of the step: more would take the compiler for ever.
inline constexpr int64_t mostLossChunks = 1024;

/// What the passes are told. Flags of `gradc compile` set these.
struct Options {
  std::string optimizer = "adamw";
  int64_t gradAccum = 1;
  bool fuse = true;
  bool epilogues = true;          ///< products do what the target's library can as they write
  int64_t lossChunk = -1;         ///< rows whose logits are computed at a time; see ChunkLossPass
  bool weightPanels = false;      ///< weights are kept in panels; see WeightPanelsPass
  std::string precision = "fp32"; ///< fp32, tf32, bf16, fp16 or fp8
  std::string float8Scaling = "current"; ///< of fp8: current or delayed
  std::string recompute = "none";        ///< none, cheap or full
  int64_t streams = 1;     ///< 2: gradients of weights on one of their own; see AssignStreamsPass
  int recomputeLevel = -1; ///< instead of a mode, where not negative; see RecomputePass
};

/// Adds the passes of one phase; none for import, codegen and link, which are not passes.
void buildPhase(Phase phase, mlir::OpPassManager &passes, const Options &options,
                const KernelLibrary &library);

/// Adds the checks of a planned module that was read from a file.
void buildPlanChecks(mlir::OpPassManager &passes);

} // namespace gradc

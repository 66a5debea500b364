// The JSON that an executable carries; docs/design/executable.md describes it.
#pragma once

#include "codegen/cpu/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <string>

namespace gradc::codegen {

/// The flags that an executable was compiled with, as its metadata repeats them.
struct CompileFlags {
  int64_t microBatch = 1, seq = 1, gradAccum = 1;
  std::string optimizer = "adamw", init = "family";
  bool fuse = true, epilogues = true;
  std::string recompute = "none";        ///< none, cheap, full or auto
  std::string precision = "fp32";        ///< fp32, tf32, bf16, fp16 or fp8
  std::string float8Scaling = "current"; ///< of fp8: current or delayed
  std::string lossChunk = "auto";        ///< rows of a chunk, 0 for all, or auto
  bool weightPanels = false;
  int64_t streams = 1;
  /// The token that ends a document, where documents are masked.
  std::optional<int64_t> documentSeparator = std::nullopt;
  std::string gemm = "generated"; ///< generated, library or auto
  std::string target = "cpu";     ///< cpu or cuda:ARCH
  bool emulate = false;
  CpuTarget host; ///< that the executable runs on
};

/// Memory by kind in bytes, as printed and as the metadata has it.
struct MemoryByKind {
  int64_t parameterCount = 0; ///< elements; the bytes of `parameters` hold low copies, too
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, workspace = 0, peak = 0;
};

/// Bytes that an executable's process holds besides state, arena and constants: its code, the
/// libraries' pages, data buffers. Measured on the demo and on GPT-2 124M (docs/design/memory.md).
inline constexpr int64_t runtimeBytes = int64_t{32} << 20;

/// From the module's gradc.plan.
MemoryByKind memoryByKind(mlir::ModuleOp module);

/// Metadata of a planned module (exec programs, gradc.plan, nn.model).
std::string executableMetadata(mlir::ModuleOp module, const CompileFlags &flags);

} // namespace gradc::codegen

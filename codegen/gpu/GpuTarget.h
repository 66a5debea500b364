// The NVIDIA GPU that code is generated for.
#pragma once

#include "codegen/kernels/VectorTarget.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace gradc::codegen::gpu {

/// Threads that run in step and exchange registers.
inline constexpr int64_t warpThreads = 32;
/// Bytes that a thread loads or stores at once, at an address that is a multiple of as many.
inline constexpr int64_t widestAccess = 16;

/// What the assembler is told of registers. Told nothing, it gives a thread as few as let a
/// multiprocessor hold one block more, and spills.
struct RegisterRequest {
  int64_t blocks = 0;    ///< that a multiprocessor should hold; 0: as many as it happens to
  int64_t registers = 0; ///< of a thread, at most; 0: no limit but that of the blocks
};

struct GpuTarget {
  /// The compute capabilities, times ten, that kernels are made for.
  static constexpr int capabilities[] = {80, 86, 89, 90};

  int capability = 80; ///< one of them

  /// "sm_80" and so on, as the PTX assembler and LLVM call it.
  std::string name() const { return "sm_" + std::to_string(capability); }

  /// Shared memory that a block may ask for, as the CUDA programming guide has it.
  constexpr int64_t blockSharedBytes() const {
    int64_t kilobytes = capability == 80 ? 163 : capability < 90 ? 99 : 227;
    return kilobytes << 10;
  }

  /// What a thread takes at a time. The vectors are those of memory: registers hold one number
  /// each.
  VectorTarget vectors(int64_t lanes) const {
    return {lanes, /*hasFma=*/true, /*hasBf16=*/true, /*aligned=*/true};
  }

  /// Nothing when kernels are not made for an architecture of that name.
  static std::optional<GpuTarget> parse(llvm::StringRef name) {
    for (int capability : capabilities)
      if (GpuTarget target{capability}; target.name() == name)
        return target;
    return std::nullopt;
  }
};

} // namespace gradc::codegen::gpu

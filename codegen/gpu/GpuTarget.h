// The NVIDIA GPU that code is generated for.
#pragma once

#include "codegen/kernels/VectorTarget.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>
#include <string>

namespace gradc::codegen::gpu {

/// Threads that run in step and exchange registers.
inline constexpr int64_t warpThreads = 32;

struct GpuTarget {
  int capability = 80; ///< compute capability times ten

  /// "sm_80" and so on, as the PTX assembler and LLVM call it.
  std::string name() const { return "sm_" + std::to_string(capability); }

  /// What a thread takes at a time. The vectors are those of memory: registers hold one number
  /// each.
  VectorTarget vectors(int64_t lanes) const {
    return {lanes, /*hasFma=*/true, /*hasBf16=*/true, /*aligned=*/true};
  }

  /// Nothing when kernels are not made for an architecture of that name.
  static std::optional<GpuTarget> parse(llvm::StringRef name) {
    int capability = llvm::StringSwitch<int>(name)
                         .Case("sm_80", 80)
                         .Case("sm_86", 86)
                         .Case("sm_89", 89)
                         .Case("sm_90", 90)
                         .Default(0);
    return capability ? std::optional<GpuTarget>({capability}) : std::nullopt;
  }
};

} // namespace gradc::codegen::gpu

// The CPU that code is generated for.
#pragma once

#include "codegen/kernels/VectorTarget.h"

#include <cstdint>
#include <string>

namespace gradc::codegen {

struct CpuTarget {
  std::string triple;
  std::string cpu;          ///< LLVM's name, e.g. znver5
  std::string features;     ///< LLVM's list, e.g. +avx512f,+avx2
  int64_t vectorBits = 128; ///< widest registers worth using: 512, 256 or 128
  bool hasBf16 = false;     ///< avx512_bf16: conversions and dot products of bf16
  /// Products of bf16 sum up two steps of the depth at a time, by the instruction where there is
  /// one, else by two multiply-adds.
  bool pairsBf16 = false;
  /// Threads that products are cut for. Any number runs them, with the same bits: fewer pack more
  /// than they need to, more leave some idle.
  int64_t threads = 1;

  int64_t f32Lanes() const { return vectorBits / 32; }
  VectorTarget vectors() const { return {f32Lanes(), vectorBits >= 256, hasBf16}; }

  /// The machine this process runs on.
  static CpuTarget host();
  /// Any machine of its architecture, for code that does no arithmetic.
  static CpuTarget baseline();
};

} // namespace gradc::codegen

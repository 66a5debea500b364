// What a target's vectors are like, to those who print kernels in them.
#pragma once

#include <cstdint>

namespace gradc::codegen {

struct VectorTarget {
  int64_t lanes = 4; ///< f32 or i32 values in a vector
  bool hasFma = false;
  bool hasBf16 = false; ///< instructions that round to bf16
  /// Whole vectors lie in memory at multiples of their size, up to 16 bytes; else of an element's.
  bool aligned = false;
};

} // namespace gradc::codegen

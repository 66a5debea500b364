// How much memory a matrix product may use to repack its right operand into the library's layout.
// Pure arithmetic on the shape, shared by the compiler, which plans the memory, and the runtime,
// which then never needs more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradc::rt {

/// Rows and columns of a packed operand are padded to a multiple of this.
inline constexpr int64_t gemmPackBlock = 64;

/// The most that is packed at a time; a wider right operand is packed and used panel by panel.
inline constexpr int64_t gemmPackLimitBytes = int64_t(16) << 20;

/// Packing reads and writes each element of the right operand once and so has to be paid by many
/// rows of the left one.
inline constexpr bool gemmPackingPays(int64_t m, int64_t n, int64_t k) {
  return m >= 512 && n >= 256 && k >= 256;
}

/// Bytes of workspace for an f32 product of an m x k by a k x n matrix without batch dimensions; 0
/// where packing does not pay or not even one narrow panel fits.
inline constexpr int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) {
  if (!gemmPackingPays(m, n, k))
    return 0;
  int64_t paddedK = (k + gemmPackBlock - 1) / gemmPackBlock * gemmPackBlock;
  int64_t columnBytes = paddedK * int64_t(sizeof(float));
  int64_t paddedN = (n + gemmPackBlock - 1) / gemmPackBlock * gemmPackBlock;
  int64_t fitting = gemmPackLimitBytes / columnBytes / gemmPackBlock * gemmPackBlock;
  return std::min(paddedN, fitting) * columnBytes;
}

} // namespace gradc::rt

// What blocks share on a GPU, for orders and counts that need a number. The registers, threads and
// bytes of a processor are those of the CUDA programming guide's table of compute capabilities; the
// processors and the cache those of the A100's whitepaper, whatever the target: an H100 has 132 and
// 50 MB, an A10 72 and 6. No result depends on them, only how well an order of blocks fits.
#pragma once

#include "codegen/gpu/GpuTarget.h"

#include <algorithm>

namespace gradc::codegen::gpu {

inline constexpr int64_t processorsOfGpu = 108;
inline constexpr int64_t secondLevelCacheBytes = 40 << 20;

inline constexpr int64_t registersOfProcessor = 65536, threadsOfProcessor = 2048;
/// Of a block: what every GPU that kernels are made for gives (sm_86 and sm_89 the least).
inline constexpr int64_t mostSharedBytes = GpuTarget{86}.blockSharedBytes();
/// Of those, what kernels whose shared memory is dynamic leave for what they have of static.
inline constexpr int64_t staticSharedBytes = 1 << 10;
/// That each block takes besides its own.
inline constexpr int64_t reservedSharedBytes = 1 << 10;
/// What all blocks of a processor share: one that takes all it can leaves nothing.
constexpr int64_t sharedBytesOfProcessor(const GpuTarget &target) {
  return target.blockSharedBytes() + reservedSharedBytes;
}

/// Blocks that fit a processor's shared memory and threads at a time.
inline int64_t residentBlocks(int64_t sharedBytes, int64_t threads, int64_t sharedOfProcessor) {
  return std::min(sharedOfProcessor / (sharedBytes + reservedSharedBytes),
                  threadsOfProcessor / threads);
}

} // namespace gradc::codegen::gpu

// The boundary between a GPU kernel that codegen/gpu has retargeted to the host and the emulator
// that runs it. Plain structs of 64-bit integers and pointers, like runtime/Abi.h. The functions
// that a retargeted kernel calls are listed in Functions.def, the warp-wide operations in
// Collectives.def.
#pragma once

#include <cstdint>

#include "runtime/Abi.h"

extern "C" {

/// The lanes of a warp that have met at one collective operation. A lane's operands and results are
/// 32-bit words in the order in which PTX lists its registers (a pointer takes two words). Entries
/// of lanes outside `mask` are not set.
struct GradcLanes {
  uint32_t mask;
  const uint32_t *operands[32];
  uint32_t *results[32];
};

/// Computes the results of all lanes of `mask`.
typedef void (*GradcCollectiveFn)(const GradcLanes *lanes);

/// One instruction of a kernel that the emulator watches: what to say about it and what is known of
/// it at compile time.
struct GradcSite {
  const char *text;             ///< the instruction, for reports
  int64_t bytes;                ///< of a memory access or an async copy, else 0
  int64_t alignment;            ///< of the address in bytes
  int64_t parameter;            ///< index of the kernel's buffer accessed; -1: found by the address
  const char *object;           ///< the shared variable accessed; null: not known
  int64_t objectOffset;         ///< of that variable in the block's shared memory
  int64_t objectBytes;          ///< 0: it is the dynamic part, which ends with the shared memory
  GradcCollectiveFn collective; ///< of a warp-wide operation, else null
};

/// A kernel retargeted to the host. `thread` runs one CUDA thread of block `task` on a fibre of the
/// emulator; which thread it is, the emulator's functions say.
struct GradcEmulatedKernel {
  GradcKernelFn thread;
  int64_t threads;           ///< a block, as the kernel declares; 0: any number
  int64_t staticSharedBytes; ///< the dynamic shared memory follows them
  int64_t sharedCell;        ///< bytes that every access to shared memory is a multiple of
  int64_t globalCell;        ///< the same of global memory
  int64_t bufferCount;
  const char *const *bufferNames;
};

} // extern "C"

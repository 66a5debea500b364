// What this machine can do at best: measured, so that a speed can be given as a share of the peak.
#pragma once

#include "runtime/Status.h"

namespace gradc::rt {

struct PeakRates {
  int threads = 0;
  const char *isa = "";      ///< of the arithmetic: "avx512", "avx2" or "generic"
  double flopsPerSecond = 0; ///< fp32, all threads together; a fused multiply-add counts as two
  double bytesPerSecond = 0; ///< to and from memory, see below
};

/// Measures for about 0.3 s with `threads` threads (the caller is one of them), best of several
/// rounds. The memory rate is that of a = b + s * c over arrays larger than most caches, 12 bytes
/// an element, with plain stores: what a row program with two inputs and an output could reach at
/// most. Other load on the machine lowers the rates, by half where it takes one of two processors.
/// Takes 192 MiB meanwhile, so read the process's resident peak before. Fails with a user
/// status where `threads` is below 1, with a machine status where threads or memory cannot be had.
Expected<PeakRates> measurePeak(int threads);

} // namespace gradc::rt

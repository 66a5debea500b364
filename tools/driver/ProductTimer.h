// What a matrix product takes on this machine: as a kernel of ours, and by the library.
#pragma once

#include "codegen/cpu/Gemm.h"

#include "llvm/Support/Error.h"

namespace gradc {

/// Medians of several runs, in seconds.
struct ProductSeconds {
  double generated = 0, library = 0;
  bool operator==(const ProductSeconds &) const = default;
};

/// Runs both on `threads` threads for about 0.2 s, and three times at least, taking turns so that
/// other load slows both. `spec` has contiguous matrices of f32. Fails where the machine lacks the
/// memory or the threads.
llvm::Expected<ProductSeconds> timeProduct(const codegen::GemmSpec &spec,
                                           const codegen::CpuTarget &target, int threads);

} // namespace gradc

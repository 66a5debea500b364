// Kernels compiled for tests.
#include "tests/numerics/CompiledKernel.h"

#include <gtest/gtest.h>

namespace gradc::codegen {

CompiledKernel::CompiledKernel(const CpuTarget &target, LoadedKernel::Emitter emit) {
  llvm::Expected<LoadedKernel> loaded = LoadedKernel::compile(target, emit);
  if (loaded)
    kernel = std::move(*loaded);
  else
    ADD_FAILURE() << llvm::toString(loaded.takeError());
}

std::vector<CpuTarget> hostTargets() {
  CpuTarget host = CpuTarget::host();
  std::vector<CpuTarget> targets{host};
  for (int64_t bits : {256, 128})
    if (bits < host.vectorBits) {
      targets.push_back(host);
      targets.back().vectorBits = bits;
      targets.back().hasBf16 = false;
    }
  return targets;
}

} // namespace gradc::codegen

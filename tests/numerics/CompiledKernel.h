// Kernels in tests: compiled for this machine, failing the test where that fails.
#pragma once

#include "codegen/cpu/LoadedKernel.h"

#include <memory>
#include <vector>

namespace gradc::codegen {

/// A kernel in memory, callable while the object lives. Equal kernels are compiled once.
class CompiledKernel {
public:
  /// Fails the current test, leaving an object that must not be called, when something goes wrong.
  CompiledKernel(const CpuTarget &target, LoadedKernel::Emitter emit);

  explicit operator bool() const { return kernel != nullptr; }

  void call(const std::vector<void *> &buffers, int64_t extent, int64_t task) const {
    kernel->function()(buffers.data(), extent, task);
  }

private:
  std::shared_ptr<const LoadedKernel> kernel;
};

/// The host, and the host restricted to narrower vectors.
std::vector<CpuTarget> hostTargets();

} // namespace gradc::codegen

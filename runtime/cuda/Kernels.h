// The executable's kernels on the GPU: which image is loaded, and its functions.
#pragma once

#include <unordered_map>

#include "runtime/Abi.h"
#include "runtime/cuda/Context.h"

namespace gradc::rt::cuda {

class Kernels {
public:
  /// A machine status where none of the images is for this GPU.
  static Status check(const Gpu &gpu, const GradcImages &images);

  /// Loads the machine code made for this GPU, where there is some and the driver takes it, else
  /// the PTX, which the driver assembles. A machine status where neither is for this GPU.
  static Expected<Kernels> load(const GpuContext &context, const GradcImages &images);

  /// The kernel of a launch, ready for the shared memory that it asks for.
  Expected<Function> find(const GradcLaunch &launch);

private:
  Kernels(const Driver &driver, Owned<Module> module)
      : driver_(&driver), module_(std::move(module)) {}

  const Driver *driver_;
  Owned<Module> module_;
  std::unordered_map<const GradcGpuKernel *, Function> functions_;
};

} // namespace gradc::rt::cuda

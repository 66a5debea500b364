// Row programs as GPU kernels, run by the emulator.
#pragma once

#include "codegen/gpu/RowSchedule.h"
#include "tests/numerics/EmulatedKernels.h"
#include "tests/numerics/RowHarness.h"

namespace gradc::row {

/// A program compiled for a GPU.
class GpuRowKernel {
public:
  /// Fails the current test when something goes wrong.
  explicit GpuRowKernel(const Program &program, codegen::gpu::GpuTarget target = {80});
  explicit operator bool() const { return static_cast<bool>(kernels); }

  /// As RowKernel::run, with the block's warps in the given order.
  std::vector<Array> run(int64_t extent, const std::vector<Array> &arrays,
                         const std::vector<std::pair<int, int>> &sameMemory = {},
                         rt::WarpOrder order = rt::WarpOrder::alternating) const;

  const Program program;
  const codegen::gpu::RowSchedule schedule;

private:
  codegen::gpu::GpuModule module;
  codegen::gpu::EmulatedKernels kernels;
};

} // namespace gradc::row

// The GPU's attention kernels in tests, run by the emulator.
#pragma once

#include "codegen/gpu/Attention.h"
#include "tests/numerics/AttentionData.h"
#include "tests/numerics/EmulatedKernels.h"

namespace gradc::codegen::gpu {

class GpuAttention {
public:
  /// `change` may alter what was printed before it is lowered.
  explicit GpuAttention(const AttentionSpec &spec,
                        llvm::function_ref<void(mlir::ModuleOp)> change = {});
  /// With the blocks of `keyHeads` key heads, which divide all of them, side by side.
  GpuAttention(const AttentionSpec &spec, int64_t keyHeads);
  explicit operator bool() const { return kernels && static_cast<bool>(*kernels); }

  /// Forward, then backward; fails the test where the emulator finds something or anything but the
  /// results is written.
  void run(attention_test::Data &x, rt::WarpOrder order = rt::WarpOrder::alternating) const;
  rt::Status runForward(attention_test::Data &x, rt::WarpOrder order) const;
  rt::Status runBackward(attention_test::Data &x, rt::WarpOrder order) const;

  /// Of the last of these runs.
  const std::vector<rt::EmulatedTraffic> &traffic() const { return kernels->traffic(); }

private:
  GpuAttention(const AttentionSpec &spec, int64_t keyHeads,
               llvm::function_ref<void(mlir::ModuleOp)> change);

  AttentionSpec spec;
  std::unique_ptr<EmulatedKernels> kernels;
};

/// Tensors of slices as the GPU takes them: strides are multiples of 16 bytes.
attention_test::Data gpuData(const AttentionSpec &spec, bool packed = true);

/// Compares both kernels with f64, the warps in different orders giving the same bits.
void checkOnGpu(const attention_test::Data &data);
void checkOnGpu(const AttentionSpec &spec, bool packed = true);

} // namespace gradc::codegen::gpu

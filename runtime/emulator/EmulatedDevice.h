// A GPU played by the host: kernels run on the emulator, matrix products in plain loops; memory is
// the CPU device's.
#pragma once

#include "runtime/cpu/CpuDevice.h"
#include "runtime/emulator/Emulator.h"

namespace gradc::rt {

class EmulatedDevice : public CpuDevice {
public:
  /// `pool` is for the CPU device's own work; kernels and products are on one thread.
  explicit EmulatedDevice(ThreadPool &pool, WarpOrder order = WarpOrder::alternating)
      : CpuDevice(pool), emulator_(order) {}

  /// Runs a kernel of an emulated executable. Its buffers are checked as long as they are.
  Status launch(const GradcLaunch &launch, int64_t iteration) override;
  /// The GPU's library, played in plain loops.
  Status gemm(const GradcGemm &gemm, int64_t iteration) override;

  /// Fills the arena with NaN: what reads memory that its program has not written shows, as on a
  /// GPU it might. Not while the arena's use is measured.
  void forgetArena() override;
  Status fillArena() override;

private:
  /// Fills the table of a launch in parts; its address.
  std::byte *writeTable(const GradcLaunch &launch, int64_t iteration);

  Emulator emulator_;
  bool isMeasured_ = false;
};

} // namespace gradc::rt

extern "C" const GradcDeviceKind gradc_emulated_device;

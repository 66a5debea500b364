// The host's cores as a device: kernels and matrix products on one thread pool, state and arena on
// huge pages.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "runtime/Device.h"
#include "runtime/cpu/Arena.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {

class CpuDevice : public Device {
public:
  /// `pool` outlives the device.
  explicit CpuDevice(ThreadPool &pool);

  Status allocate(const SpaceSizes &sizes) override;
  Status write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) override;
  Status read(GradcSpace space, int64_t offset, void *data, int64_t bytes) override;
  Status access(GradcSpace space, int64_t offset, int64_t bytes, Access mode,
                const std::function<Status(std::byte *)> &use) override;
  Status launch(const GradcLaunch &launch, int64_t iteration) override;
  Status gemm(const GradcGemm &gemm, int64_t iteration) override;
  Status synchronize() override { return Status(); }

  Status fillArena() override;
  Expected<int64_t> arenaHighWater() override { return arena_.highWater(); }

protected:
  std::byte *resolve(const GradcBuffer &buffer, int64_t iteration) const;
  std::span<std::byte> arenaBytes() const {
    return {base_[GRADC_ARENA], size_t(size_[GRADC_ARENA])};
  }

private:
  Status checkRange(GradcSpace space, int64_t offset, int64_t bytes) const;

  ThreadPool &pool_;
  GemmEngine gemm_;
  Arena state_, arena_;
  std::array<std::byte *, 3> base_{};
  std::array<int64_t, 3> size_{};
  std::vector<void *> addresses_; ///< of the current launch; kept to allocate nothing in a step
};

} // namespace gradc::rt

extern "C" const GradcDeviceKind gradc_cpu_device;

// The GPU that an executable runs on: the first that the driver shows ($CUDA_VISIBLE_DEVICES tells
// it which), and its primary context.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/Driver.h"

namespace gradc::rt::cuda {

struct Gpu {
  DeviceNumber number = 0;
  std::string name;   ///< "NVIDIA H200", in printable ASCII
  int capability = 0; ///< the compute capability times ten: 90 of sm_90

  /// Takes nothing of it. A machine status where there is no driver, no GPU, or none of a
  /// capability.
  static Expected<Gpu> find();
  static Expected<Gpu> find(const Driver &driver);
};

/// Current on the thread that made it, from then to its end.
class GpuContext {
public:
  /// A machine status where there is no driver, no GPU, or no context to be had.
  static Expected<std::unique_ptr<GpuContext>> create();
  ~GpuContext();
  GpuContext(const GpuContext &) = delete;
  GpuContext &operator=(const GpuContext &) = delete;

  const Driver &driver() const { return *driver_; }
  const Gpu &gpu() const { return gpu_; }

private:
  explicit GpuContext(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
  Status open();

  std::unique_ptr<Driver> driver_;
  Gpu gpu_;
  bool retained_ = false;
};

} // namespace gradc::rt::cuda

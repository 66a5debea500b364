// The GPU that an executable runs on: the first that the driver shows ($CUDA_VISIBLE_DEVICES tells
// it which), with its primary context.
#pragma once

#include <memory>
#include <string>

#include "runtime/cuda/Driver.h"

namespace gradc::rt::cuda {

/// Current on the thread that made it, from then to its end.
class GpuContext {
public:
  /// A machine status where there is no driver, no GPU, or no context to be had.
  static Expected<std::unique_ptr<GpuContext>> create();
  /// Its GPU's name, without a context.
  static Expected<std::string> deviceName();
  ~GpuContext();
  GpuContext(const GpuContext &) = delete;
  GpuContext &operator=(const GpuContext &) = delete;

  const Driver &driver() const { return *driver_; }
  /// "NVIDIA H200"
  const std::string &name() const { return name_; }
  /// The compute capability times ten: 90 of sm_90.
  int capability() const { return capability_; }

private:
  explicit GpuContext(std::unique_ptr<Driver> driver) : driver_(std::move(driver)) {}
  Status choose(); ///< the GPU: its number and name
  Status open();

  std::unique_ptr<Driver> driver_;
  std::string name_;
  int capability_ = 0;
  DeviceNumber device_ = 0;
  bool retained_ = false;
};

} // namespace gradc::rt::cuda

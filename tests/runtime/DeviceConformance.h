// What every device must do: one suite, which each test program runs on the devices that it names.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/Device.h"

namespace gradc::rt {

struct DeviceUnderTest {
  std::string name;
  std::function<Expected<std::unique_ptr<Device>>()> create;
  /// A kernel with the buffers (in, addend, out), f32: out[task] = in[task] + addend[0].
  GradcKernelFn kernel;
  const GradcGpuKernel *gpu;
};

/// Defined by each test program.
std::vector<DeviceUnderTest> devicesUnderTest();

} // namespace gradc::rt

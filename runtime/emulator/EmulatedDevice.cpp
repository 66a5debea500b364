// EmulatedDevice: launches as the emulator takes them.
#include "runtime/emulator/EmulatedDevice.h"

#include "runtime/cpu/PeakProbe.h"
#include "runtime/emulator/Gemm.h"

#include <fmt/format.h>

namespace gradc::rt {

Status EmulatedDevice::launch(const GradcLaunch &launch, int64_t iteration) {
  if (!launch.gpu || !launch.gpu->emulated)
    return Status::defect(fmt::format(
        "kernel {} cannot be emulated; compile with --target cuda and --emulate", launch.name));
  const GradcGpuKernel &gpu = *launch.gpu;
  EmulatedLaunch emulated{launch.name,  gpu.emulated,  gpu.threads, gpu.sharedBytes,
                          launch.tasks, launch.extent, {}};
  for (int64_t i = 0; i < launch.bufferCount; ++i)
    emulated.buffers.push_back(
        {resolve(launch.buffers[i], iteration), launch.buffers[i].bytes, i >= gpu.inputs});
  return emulator_.run(emulated);
}

Status EmulatedDevice::gemm(const GradcGemm &gemm, int64_t iteration) {
  auto address = [&](const GradcBuffer &buffer) { return resolve(buffer, iteration); };
  auto scale = [&](const GradcBuffer &buffer) {
    return gemm.scaled ? *reinterpret_cast<const float *>(address(buffer)) : 1.0f;
  };
  return emulateGemm(gemm, {address(gemm.a.buffer), address(gemm.b.buffer), address(gemm.c.buffer),
                            scale(gemm.scaleA) * scale(gemm.scaleB), address(gemm.bias),
                            address(gemm.aux)});
}

} // namespace gradc::rt

static gradc::rt::Expected<std::unique_ptr<gradc::rt::Device>>
createDevice(const GradcExecutable &, gradc::rt::ThreadPool &pool) {
  return std::unique_ptr<gradc::rt::Device>(std::make_unique<gradc::rt::EmulatedDevice>(pool));
}

constinit const GradcDeviceKind gradc_emulated_device = {createDevice, gradc::rt::probePeak};

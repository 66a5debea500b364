// EmulatedDevice: launches as the emulator takes them.
#include "runtime/emulator/EmulatedDevice.h"

#include "runtime/Parts.h"
#include "runtime/emulator/Gemm.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace gradc::rt {

Status EmulatedDevice::launch(const GradcLaunch &launch, int64_t iteration) {
  if (!launch.gpu || !launch.gpu->emulated)
    return Status::defect(fmt::format(
        "kernel {} cannot be emulated; compile with --target cuda and --emulate", launch.name));
  const GradcGpuKernel &gpu = *launch.gpu;
  EmulatedLaunch emulated{launch.name,  gpu.emulated,  gpu.threads, gpu.sharedBytes,
                          launch.tasks, launch.extent, {},          {}};
  auto add = [&](const GradcBuffer *buffers, std::vector<EmulatedBuffer> &to) {
    for (int64_t i = 0; i < launch.bufferCount; ++i)
      to.push_back({resolve(buffers[i], iteration), buffers[i].bytes, i >= gpu.inputs});
  };
  if (launch.partCount == 0) {
    add(launch.buffers, emulated.buffers);
    return emulator_.run(emulated);
  }
  for (int64_t part = 0; part < launch.partCount; ++part) {
    emulated.parts.push_back({launch.parts[part].firstTask, {}});
    add(launch.buffers + part * launch.bufferCount, emulated.parts.back().buffers);
  }
  emulated.extent = launch.partCount;
  emulated.buffers.push_back({writeTable(launch, iteration), launch.table.bytes, false});
  return emulator_.run(emulated);
}

void EmulatedDevice::forgetArena() {
  if (!isMeasured_)
    std::ranges::fill(arenaBytes(), std::byte(0xFF)); // in every type of floating-point number
}

Status EmulatedDevice::fillArena() {
  isMeasured_ = true;
  return CpuDevice::fillArena();
}

std::byte *EmulatedDevice::writeTable(const GradcLaunch &launch, int64_t iteration) {
  std::vector<int64_t> addresses;
  for (int64_t i = 0; i < launch.partCount * launch.bufferCount; ++i)
    addresses.push_back(reinterpret_cast<int64_t>(resolve(launch.buffers[i], iteration)));
  std::vector<int64_t> words = partTable(launch, addresses);
  std::byte *table = resolve(launch.table, iteration);
  std::memcpy(table, words.data(), words.size() * sizeof(int64_t));
  return table;
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

/// What the host can do at best says nothing of a GPU's kernels.
static gradc::rt::Expected<gradc::rt::DevicePeak> peak(int) {
  return gradc::rt::DevicePeak{"emulated GPU"};
}

constinit const GradcDeviceKind gradc_emulated_device = {createDevice, peak, nullptr, false};

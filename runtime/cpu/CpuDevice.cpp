// CpuDevice: resolves planned offsets to addresses and hands tasks to the pool.
#include "runtime/cpu/CpuDevice.h"

#include <algorithm>
#include <cstring>
#include <malloc.h>

#include <fmt/format.h>

#include "runtime/Parts.h"
#include "runtime/cpu/PeakProbe.h"

namespace gradc::rt {
namespace {

/// oneDNN allocates and frees blocks of some megabytes in each product: keep them in the heap, or
/// every product pays for fresh pages.
void keepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

} // namespace

CpuDevice::CpuDevice(ThreadPool &pool) : pool_(pool), gemm_(pool) {}

Status CpuDevice::allocate(const SpaceSizes &sizes) {
  int64_t needed = sizes.state + sizes.arena;
  int64_t available = availableMemoryBytes();
  if (needed > available)
    return Status::machine(
        fmt::format("the program needs {} ({} of parameters and optimizer state, {} of step "
                    "memory) and only {} "
                    "is available; compile with a smaller --micro-batch or --seq, or free memory",
                    formatBytes(needed), formatBytes(sizes.state), formatBytes(sizes.arena),
                    formatBytes(available)));
  GRADC_ASSIGN_OR_RETURN(
      state_, Arena::create(sizes.state, "the memory of parameters and optimizer state", pool_));
  GRADC_ASSIGN_OR_RETURN(arena_, Arena::create(sizes.arena, "the memory of a step", pool_));
  base_ = {state_.data(), arena_.data(),
           static_cast<std::byte *>(const_cast<void *>(sizes.constants))};
  size_ = {sizes.state, sizes.arena, sizes.constantBytes};
  return Status();
}

Status CpuDevice::checkRange(GradcSpace space, int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || offset > size_[space] || bytes > size_[space] - offset)
    return outsideOfSpace(space, offset, bytes, size_[space]);
  return Status();
}

Status CpuDevice::write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) {
  GRADC_RETURN_IF_ERROR(checkRange(space, offset, bytes));
  if (bytes > 0)
    std::memcpy(base_[space] + offset, data, std::size_t(bytes));
  return Status();
}

Status CpuDevice::read(GradcSpace space, int64_t offset, void *data, int64_t bytes) {
  GRADC_RETURN_IF_ERROR(checkRange(space, offset, bytes));
  if (bytes > 0)
    std::memcpy(data, base_[space] + offset, std::size_t(bytes));
  return Status();
}

Status CpuDevice::access(GradcSpace space, int64_t offset, int64_t bytes, Access,
                         const std::function<Status(std::byte *)> &use) {
  GRADC_RETURN_IF_ERROR(checkRange(space, offset, bytes));
  return use(base_[space] + offset);
}

Status CpuDevice::fillArena() {
  arena_.fillPattern(pool_);
  return Status();
}

std::byte *CpuDevice::resolve(const GradcBuffer &buffer, int64_t iteration) const {
  return base_[buffer.space] + buffer.offset + iteration * buffer.loopStride;
}

Status CpuDevice::launch(const GradcLaunch &launch, int64_t iteration) {
  int64_t count = launch.bufferCount * std::max<int64_t>(1, launch.partCount);
  addresses_.resize(count);
  for (int64_t i = 0; i < count; ++i)
    addresses_[i] = resolve(launch.buffers[i], iteration);
  if (launch.partCount > 0) {
    pool_.parallelFor(launch.tasks, [&](int64_t task, int) {
      int64_t number = partOf(launch, task);
      const GradcPart &part = launch.parts[number];
      launch.kernel(addresses_.data() + number * launch.bufferCount, part.extent,
                    task - part.firstTask);
    });
    return Status();
  }
  pool_.parallelFor(launch.tasks, [&](int64_t task, int) {
    launch.kernel(addresses_.data(), launch.extent, task);
  });
  return Status();
}

Status CpuDevice::gemm(const GradcGemm &gemm, int64_t iteration) {
  if (gemm.a.type != GRADC_F32 || gemm.b.type != GRADC_F32 || gemm.c.type != GRADC_F32 ||
      gemm.tf32 || gemm.scaled || gemm.epilogue != GRADC_NO_EPILOGUE)
    return Status::defect(
        fmt::format("product {}: the library of this device is given plain products of f32 alone; "
                    "please report this",
                    gemm.name));
  auto floats = [&](const GradcMatrix &matrix) {
    return reinterpret_cast<float *>(resolve(matrix.buffer, iteration));
  };
  std::byte *workspace = gemm.workspaceBytes > 0 ? resolve(gemm.workspace, iteration) : nullptr;
  return gemm_.run(gemm, floats(gemm.a), floats(gemm.b), floats(gemm.c), workspace);
}

} // namespace gradc::rt

static gradc::rt::Expected<std::unique_ptr<gradc::rt::Device>>
createDevice(const GradcExecutable &, gradc::rt::ThreadPool &pool) {
  gradc::rt::keepFreedMemory();
  return std::unique_ptr<gradc::rt::Device>(std::make_unique<gradc::rt::CpuDevice>(pool));
}

constinit const GradcDeviceKind gradc_cpu_device = {createDevice, gradc::rt::probePeak, nullptr,
                                                    false};

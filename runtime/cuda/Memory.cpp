// See Memory.h.
#include "runtime/cuda/Memory.h"

#include <fmt/format.h>

#include "runtime/cpu/Arena.h"
#include "runtime/cuda/Transfers.h"

namespace gradc::rt::cuda {
namespace {

/// What the driver and the library take after the one allocation: code that is loaded when it is
/// first used, local memory of threads. Without room for it an error would come later, and by
/// another name.
constexpr int64_t laterBytes = int64_t{256} << 20;

/// Of every space: what the driver aligns allocations to.
int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

} // namespace

Expected<Memory> Memory::create(const GpuContext &context, const SpaceSizes &sizes) {
  Memory memory;
  memory.size_ = {sizes.state, sizes.arena, sizes.constantBytes};
  std::array<int64_t, 3> offset{};
  int64_t bytes = 0;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    offset[i] = bytes;
    bytes += aligned(memory.size_[i]);
  }
  int64_t inbox = bytes;
  bytes += Transfers::inboxBytes;

  std::size_t free = 0, total = 0;
  GRADC_RETURN_IF_ERROR(context.driver().memGetInfo(&free, &total));
  if (std::size_t(bytes + laterBytes) > free)
    return Status::machine(fmt::format(
        "the program needs {} of the GPU's memory ({} of parameters and optimizer state, {} of "
        "step memory, {} for code and the library) and {} of the {} of {} are free; compile with a "
        "smaller --micro-batch or --seq, or end what else runs there",
        formatBytes(bytes + laterBytes), formatBytes(sizes.state), formatBytes(sizes.arena),
        formatBytes(laterBytes), formatBytes(int64_t(free)), formatBytes(int64_t(total)),
        context.gpu().name));
  Address address = 0;
  GRADC_RETURN_IF_ERROR(context.driver().memAlloc(&address, std::size_t(bytes)));
  memory.memory_ = Owned<Address>(context.driver().memFree, address);
  for (std::size_t i = 0; i < offset.size(); ++i)
    memory.base_[i] = address + Address(offset[i]);
  memory.inbox_ = address + Address(inbox);
  return memory;
}

Expected<Address> Memory::range(GradcSpace space, int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || offset > size(space) || bytes > size(space) - offset)
    return outsideOfSpace(space, offset, bytes, size(space));
  return this->space(space) + Address(offset);
}

} // namespace gradc::rt::cuda

// See Memory.h.
#include "runtime/cuda/Memory.h"

#include <fmt/format.h>

#include "runtime/cpu/Arena.h"
#include "runtime/cuda/Transfers.h"

namespace gradc::rt::cuda {
namespace {

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
  if (std::size_t(bytes) > free)
    return Status::machine(fmt::format(
        "the program needs {} of the GPU's memory ({} of parameters and optimizer state, {} of "
        "step "
        "memory) and {} of the {} of {} are free; compile with a smaller --micro-batch or --seq, "
        "or end what else runs there",
        formatBytes(bytes), formatBytes(sizes.state), formatBytes(sizes.arena),
        formatBytes(int64_t(free)), formatBytes(int64_t(total)), context.name()));
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

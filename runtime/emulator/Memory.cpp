// Machine: which memory an access belongs to, whether it stays inside, is aligned, and is ordered
// after those before it.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace gradc::rt::emulator {
namespace {

using Access = Machine::Access;

bool isWrite(Access access) { return access != Access::read; }

template <bool isShared> Conflict touch(Cell &cell, const Clock &clock, Access access) {
  switch (access) {
  case Access::read:
    return read<isShared>(cell, clock);
  case Access::write:
    return write<isShared>(cell, clock);
  case Access::issueCopy:
    return write<isShared>(cell, clock, inFlight);
  case Access::finishCopy:
    cell.write = clock.now;
    return Conflict::none;
  }
  __builtin_unreachable();
}

std::string whoIs(Stamp stamp) {
  if (!(stamp & ofWarps))
    return fmt::format("thread {}", identity(stamp));
  if (std::has_single_bit(warpsOf(stamp)))
    return fmt::format("lanes of warp {}", std::countr_zero(warpsOf(stamp)));
  return "several warps";
}

std::string sharedName(const GradcSite &site) {
  return site.object ? fmt::format("shared memory ({})", site.object) : "shared memory";
}

/// An access of `bytes` at `offset` from the start of something that has `size` bytes.
std::string outOfBounds(int64_t offset, int64_t bytes, int64_t size, const std::string &object,
                        const GradcSite &site) {
  std::string place = offset < 0 ? fmt::format("begins {} bytes before", -offset)
                                 : fmt::format("ends {} bytes behind", offset + bytes - size);
  return fmt::format(
      "out of bounds: {} {}, which has {} bytes: {}; check the index and what guards "
      "it",
      place, object, size, site.text);
}

/// What is wrong with an access, on whose cell the earlier access is still recorded.
std::string describe(Conflict conflict, const Cell &cell, Access access, const std::string &object,
                     int64_t offset, const GradcSite &site) {
  std::string what =
      fmt::format("{} byte {} of {}", isWrite(access) ? "writes" : "reads", offset, object);
  switch (conflict) {
  case Conflict::uninitialised:
    return fmt::format("uninitialised: {}, which the block has not written: {}", what, site.text);
  case Conflict::inFlight:
    return fmt::format(
        "in flight: {}, to which an async copy of {} is on its way: {}; wait for the "
        "copy's group before",
        what, whoIs(cell.write), site.text);
  case Conflict::afterWrite:
  case Conflict::afterRead:
    return fmt::format("race: {} that {} with no barrier between: {}", what,
                       conflict == Conflict::afterWrite ? whoIs(cell.write) + " wrote"
                                                        : whoIs(cell.read) + " read",
                       site.text);
  case Conflict::otherBlockWrote:
  case Conflict::otherBlockRead:
    return fmt::format("race: {} that {} of another block {}: {}; blocks have no order", what,
                       conflict == Conflict::otherBlockWrote ? whoIs(cell.write) : whoIs(cell.read),
                       conflict == Conflict::otherBlockWrote ? "wrote" : "read", site.text);
  case Conflict::none:
    break;
  }
  __builtin_unreachable();
}

} // namespace

/// Gives each buffer its part of the shadow memory; buffers that overlap get the same cells.
void Machine::placeBuffers() {
  globalShift_ = std::countr_zero(uint64_t(launch_->kernel->globalCell));
  buffers_.clear();
  addresses_.clear();
  std::vector<GlobalBuffer *> byAddress;
  parts_.clear();
  part_ = 0;
  auto add = [&](const EmulatedBuffer &buffer) {
    buffers_.push_back(
        {static_cast<std::byte *>(buffer.address), buffer.bytes, buffer.writable, nullptr});
  };
  for (const EmulatedBuffer &buffer : launch_->buffers) {
    add(buffer);
    addresses_.push_back(buffer.address);
  }
  for (const EmulatedPart &part : launch_->parts) {
    parts_.push_back({part.firstBlock, buffers_.size(), part.buffers.size()});
    std::ranges::for_each(part.buffers, add);
  }
  traffic_.assign(buffers_.size(), {});
  for (GlobalBuffer &buffer : buffers_)
    byAddress.push_back(&buffer);
  std::sort(byAddress.begin(), byAddress.end(),
            [](auto *a, auto *b) { return a->begin < b->begin; });
  std::uintptr_t first = 0, used = 0; // of the present run of buffers: its first cell, its end
  std::vector<std::size_t> places;
  std::size_t total = 0;
  for (GlobalBuffer *buffer : byAddress) {
    std::uintptr_t begin = cellNumber(buffer->begin),
                   end = cellNumber(buffer->begin + buffer->bytes) + 1;
    if (places.empty() || begin >= used) {
      total += used - first;
      first = begin;
      used = end;
    }
    used = std::max(used, end);
    places.push_back(total + (begin - first));
  }
  total += used - first;
  globalCells_.resize(std::max(globalCells_.size(), total));
  for (std::size_t i = 0; i < places.size(); ++i)
    byAddress[i]->cells = globalCells_.data() + places[i];
}

std::array<std::span<const GlobalBuffer>, 2> Machine::accessible() const {
  std::span<const GlobalBuffer> all(buffers_);
  if (parts_.empty())
    return {all, {}};
  const Part &part = parts_[part_];
  return {all.first(launch_->buffers.size()), all.subspan(part.firstBuffer, part.buffers)};
}

const GlobalBuffer &Machine::bufferOf(const std::byte *address, int64_t bytes, Access access,
                                      const GradcSite &site) {
  if (site.parameter >= 0)
    return buffers_[site.parameter];
  const GlobalBuffer *nearest = nullptr;
  int64_t least = 0;
  for (std::span<const GlobalBuffer> buffers : accessible())
    for (const GlobalBuffer &buffer : buffers) {
      int64_t before = buffer.begin - address,
              behind = address + bytes - (buffer.begin + buffer.bytes);
      int64_t distance = std::max<int64_t>({0, before, behind});
      if (distance == 0 && (buffer.writable || !isWrite(access)))
        return buffer;
      if (!nearest || distance < least) {
        nearest = &buffer;
        least = distance;
      }
    }
  if (!nearest)
    fail([&] {
      return fmt::format("accesses global memory and the launch has no buffer: {}", site.text);
    });
  return *nearest;
}

std::string Machine::bufferName(const GlobalBuffer &buffer) const {
  std::size_t index = &buffer - buffers_.data();
  if (index >= launch_->buffers.size())
    return fmt::format("buffer {} of part {}", index - parts_[part_].firstBuffer, part_);
  const char *name = launch_->kernel->bufferNames[index];
  return *name ? fmt::format("buffer {} ({})", index, name) : fmt::format("buffer {}", index);
}

void Machine::checkAlignment(const std::byte *address, const GradcSite &site) {
  auto number = reinterpret_cast<std::uintptr_t>(address);
  if (number & std::uintptr_t(site.alignment - 1))
    fail([&] {
      return fmt::format("misaligned: the address is {} bytes past a multiple of {}: {}; align the "
                         "index, or access fewer bytes at a time",
                         number & std::uintptr_t(site.alignment - 1), site.alignment, site.text);
    });
}

void Machine::accessShared(const std::byte *address, int64_t bytes, Access access,
                           const GradcSite &site) {
  const std::byte *begin = shared_ + site.objectOffset;
  int64_t size = site.objectBytes > 0 ? site.objectBytes : sharedBytes_ - site.objectOffset;
  int64_t offset = address - begin;
  if (offset < 0 || offset > size - bytes)
    fail([&] { return outOfBounds(offset, bytes, size, sharedName(site), site); });
  const Clock clock = clock_;
  Cell *cell = &sharedCells_[(address - shared_) >> sharedShift_];
  for (Cell *end = cell + (bytes >> sharedShift_); cell != end; ++cell)
    if (Conflict conflict = touch<true>(*cell, clock, access); conflict != Conflict::none)
      fail([&] {
        int64_t at = ((cell - sharedCells_.data()) << sharedShift_) - site.objectOffset;
        return describe(conflict, *cell, access, sharedName(site), at, site);
      });
}

void Machine::readSharedAsWarp(const std::byte *address, int64_t bytes, const GradcSite &site) {
  Stamp thread = clock_.now;
  clock_.now = time_ | ofWarps | Stamp(1) << current_->warp();
  accessShared(address, bytes, Access::read, site);
  clock_.now = thread;
}

void Machine::accessGlobal(const std::byte *address, int64_t bytes, Access access,
                           const GradcSite &site) {
  const GlobalBuffer &buffer = bufferOf(address, bytes, access, site);
  int64_t offset = address - buffer.begin;
  if (offset < 0 || offset > buffer.bytes - bytes)
    fail([&] { return outOfBounds(offset, bytes, buffer.bytes, bufferName(buffer), site); });
  if (isWrite(access) && !buffer.writable)
    fail([&] {
      return fmt::format("writes {}, which the launch only reads: {}", bufferName(buffer),
                         site.text);
    });
  EmulatedTraffic &traffic = traffic_[&buffer - buffers_.data()];
  (isWrite(access) ? traffic.written : traffic.read) += bytes;
  const Clock clock = clock_;
  std::uintptr_t first = cellNumber(address) - cellNumber(buffer.begin);
  std::uintptr_t last = cellNumber(address + bytes - 1) - cellNumber(buffer.begin);
  for (Cell *cell = buffer.cells + first; cell <= buffer.cells + last; ++cell)
    if (Conflict conflict = touch<false>(*cell, clock, access); conflict != Conflict::none)
      fail([&] { return describe(conflict, *cell, access, bufferName(buffer), offset, site); });
}

namespace {

const std::byte *bytes(P address) { return static_cast<const std::byte *>(address); }

void checkShared(P address, S site, Access access) {
  machine->checkAlignment(bytes(address), *site);
  machine->accessShared(bytes(address), site->bytes, access, *site);
}

void checkGlobal(P address, S site, Access access) {
  machine->checkAlignment(bytes(address), *site);
  machine->accessGlobal(bytes(address), site->bytes, access, *site);
}

void checkAny(P address, int64_t count, S site, Access access) {
  if (count == 0)
    return;
  machine->checkAlignment(bytes(address), *site);
  if (machine->isShared(bytes(address)))
    machine->accessShared(bytes(address), count, access, *site);
  else
    machine->accessGlobal(bytes(address), count, access, *site);
}

} // namespace

extern "C" {

P gradc_emulated_shared() { return machine->shared(); }
void gradc_emulated_load_shared(P address, S site) { checkShared(address, site, Access::read); }
void gradc_emulated_store_shared(P address, S site) { checkShared(address, site, Access::write); }
void gradc_emulated_load_global(P address, S site) { checkGlobal(address, site, Access::read); }
void gradc_emulated_store_global(P address, S site) { checkGlobal(address, site, Access::write); }
void gradc_emulated_load_any(P address, S site) {
  checkAny(address, site->bytes, site, Access::read);
}
void gradc_emulated_store_any(P address, S site) {
  checkAny(address, site->bytes, site, Access::write);
}
void gradc_emulated_load_range(P address, S site, L count) {
  checkAny(address, count, site, Access::read);
}
void gradc_emulated_store_range(P address, S site, L count) {
  checkAny(address, count, site, Access::write);
}

} // extern "C"

} // namespace gradc::rt::emulator

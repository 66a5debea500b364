// Maps the stacks of fibres.
#include "runtime/emulator/Fibers.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include <fmt/format.h>

namespace gradc::rt::emulator {
namespace {

constexpr int64_t stackBytes = 256 << 10; // kernels keep accumulators and unrolled tiles there
constexpr int64_t guardBytes = 4096;      // unmapped, below each stack

/// Stacks begin at different offsets in a page: at the same one, the hot lines of all fibres would
/// compete for the same few sets of the cache.
int64_t colour(int64_t index) { return index % 29 * 704; }

} // namespace

FiberStacks::~FiberStacks() {
  if (memory_)
    munmap(memory_, std::size_t(count_ * stackBytes));
}

Status FiberStacks::reserve(int64_t count) {
  if (count <= count_)
    return Status();
  void *mapping = mmap(nullptr, std::size_t(count * stackBytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return Status::machine(fmt::format("cannot map stacks for {} emulated threads: {}; raise the "
                                       "limit on address space (ulimit -v)",
                                       count, std::strerror(errno)));
  if (memory_)
    munmap(memory_, std::size_t(count_ * stackBytes));
  memory_ = static_cast<std::byte *>(mapping);
  count_ = count;
  for (int64_t index = 0; index < count; ++index)
    // A kernel that overflows its stack must fault rather than write into its neighbour's.
    if (mprotect(memory_ + index * stackBytes, guardBytes, PROT_NONE) != 0)
      return Status::machine(
          fmt::format("cannot guard the stacks of emulated threads: {}", std::strerror(errno)));
  return Status();
}

Fiber FiberStacks::start(int64_t index, void (*entry)(boost::context::detail::transfer_t)) {
  int64_t lost = colour(index);
  std::byte *top = memory_ + (index + 1) * stackBytes - lost;
  return boost::context::detail::make_fcontext(top, std::size_t(stackBytes - guardBytes - lost),
                                               entry);
}

} // namespace gradc::rt::emulator

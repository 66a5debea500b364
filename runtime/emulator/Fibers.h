// Stacks and switches for the fibres that play CUDA threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include <boost/context/detail/fcontext.hpp>

#include "runtime/Status.h"

namespace gradc::rt::emulator {

/// A suspended fibre.
using Fiber = boost::context::detail::fcontext_t;

/// One stack a fibre, mapped as a whole; a page is taken when it is first touched.
class FiberStacks {
public:
  FiberStacks() = default;
  FiberStacks(const FiberStacks &) = delete;
  FiberStacks &operator=(const FiberStacks &) = delete;
  ~FiberStacks();

  /// Makes sure of `count` stacks. A machine status when the address space cannot be had.
  Status reserve(int64_t count);

  /// A fibre that runs `entry` on stack `index` when it is first switched to; `entry` must not
  /// return. What ran on that stack before is gone.
  Fiber start(int64_t index, void (*entry)(boost::context::detail::transfer_t));

private:
  std::byte *memory_ = nullptr;
  int64_t count_ = 0;
};

/// Suspends the running fibre into `*self` and runs `next`. Returns when something switches back.
inline void switchFiber(Fiber next, Fiber *self) {
  boost::context::detail::transfer_t from =
      boost::context::detail::jump_fcontext(next, static_cast<void *>(self));
  *static_cast<Fiber *>(from.data) = from.fctx;
}

} // namespace gradc::rt::emulator

// Copies between the host's memory and the GPU's, through pinned memory on a stream of their own:
// what the next step reads is on its way while a step runs.
#pragma once

#include <array>

#include "runtime/cuda/Driver.h"

namespace gradc::rt::cuda {

/// Not for use by several threads at once.
class Transfers {
public:
  /// Memory of the GPU that uploads pass through: the caller's, as long as this lives.
  static constexpr int64_t inboxBytes = 8 << 20;

  /// `compute` is the stream whose work the copies are ordered with.
  static Expected<Transfers> create(const Driver &driver, Stream compute, Address inbox);
  Transfers(Transfers &&) = default;
  Transfers &operator=(Transfers &&) = default;
  /// Waits for copies under way.
  ~Transfers();

  /// Copies `bytes` of `data` before it returns. They arrive behind what `compute` was given
  /// before, and before what it is given next; the way to the GPU's memory does not wait for
  /// `compute`.
  Status upload(Address to, const void *data, int64_t bytes);
  /// Waits for what `compute` was given before, by an event, and for nothing else.
  Status download(Address from, void *data, int64_t bytes);

private:
  /// Pinned memory and as much of the inbox, filled from the start; free again behind an event.
  struct Half {
    Owned<Event> free;
    int64_t used = 0;
    bool isLeft = false; ///< the event was recorded
  };
  Transfers(const Driver &driver, Stream compute, Address inbox)
      : driver_(&driver), compute_(compute), inbox_(inbox) {}
  Status open();
  Status takeOtherHalf();
  Status uploadPiece(Address to, const std::byte *data, int64_t bytes);

  const Driver *driver_;
  Stream compute_;
  Address inbox_;
  Owned<Stream> copies_;
  Owned<void *> pinnedOut_, pinnedIn_; ///< to the GPU, and from it
  std::array<Half, 2> halves_;
  int current_ = 0;
  Owned<Event> uploaded_, computed_;
  std::array<Owned<Event>, 2> arrived_; ///< of the two halves of pinnedIn_
};

} // namespace gradc::rt::cuda

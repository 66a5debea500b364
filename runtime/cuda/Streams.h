// The streams and events that programs name (GradcStreamEvent), made once and kept: none for a
// program of one stream.
#pragma once

#include <vector>

#include "runtime/Abi.h"
#include "runtime/cuda/Driver.h"

namespace gradc::rt::cuda {

class Streams {
public:
  /// `first` is stream 0, the caller's.
  Streams(const Driver &driver, Stream first) : driver_(driver), first_(first) {}

  /// Makes the stream and the event; nothing may be made once a capture has begun.
  Status prepare(const GradcStreamEvent &event);
  Status record(const GradcStreamEvent &event);
  Status wait(const GradcStreamEvent &event);
  /// Stream 0, or one that was prepared.
  Stream get(int64_t number) const;

private:
  const Driver &driver_;
  Stream first_;
  std::vector<Owned<Stream>> others_; ///< from stream 1 on
  std::vector<Owned<Event>> events_;  ///< by number
};

} // namespace gradc::rt::cuda

// See LastAccess.h.
#include "passes/streams/LastAccess.h"

#include <algorithm>

namespace gradc::streams {

void LastAccess::cut(Bytes &bytes, int64_t at) {
  auto next = bytes.lower_bound(at);
  if (next != bytes.end() && next->first == at)
    return;
  Marks none{Clock(streams, -1), Clock(streams, -1)};
  bytes.emplace_hint(next, at, next == bytes.begin() ? none : std::prev(next)->second);
}

std::pair<LastAccess::Bytes::iterator, LastAccess::Bytes::iterator>
LastAccess::stretches(const Access &access) {
  Bytes &bytes = spaces[access.space];
  cut(bytes, access.begin);
  cut(bytes, access.end);
  return {bytes.find(access.begin), bytes.find(access.end)};
}

void LastAccess::require(const Access &access, Clock &after) {
  auto [begin, end] = stretches(access);
  for (auto stretch = begin; stretch != end; ++stretch) {
    const Clock &last = access.isWrite ? stretch->second.touched : stretch->second.written;
    for (size_t stream = 0; stream < streams; ++stream)
      after[stream] = std::max(after[stream], last[stream]);
  }
}

void LastAccess::note(const Access &access, size_t stream, int64_t number) {
  auto [begin, end] = stretches(access);
  for (auto stretch = begin; stretch != end; ++stretch) {
    stretch->second.touched[stream] = number;
    if (access.isWrite)
      stretch->second.written[stream] = number;
  }
}

} // namespace gradc::streams

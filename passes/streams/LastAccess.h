// The commands of each stream that read and wrote each byte last.
#pragma once

#include "passes/streams/CommandBytes.h"

#include <map>
#include <vector>

namespace gradc::streams {

/// How far each stream has come: the number of a command of each, or -1 for none.
using Clock = std::vector<int64_t>;

class LastAccess {
public:
  explicit LastAccess(size_t streams) : streams(streams) {}

  /// Raises `after` to the last command of each stream that one with this access has to follow.
  void require(const Access &access, Clock &after);
  /// That command `number` of a stream, a larger one than those before, has this access.
  void note(const Access &access, size_t stream, int64_t number);

private:
  struct Marks {
    Clock touched, written;
  };
  using Bytes = std::map<int64_t, Marks>; ///< by the first byte of each stretch of equal marks

  /// The stretches from the access's begin to its end, cut there.
  std::pair<Bytes::iterator, Bytes::iterator> stretches(const Access &access);
  void cut(Bytes &bytes, int64_t at);

  size_t streams;
  std::map<exec::Space, Bytes> spaces;
};

} // namespace gradc::streams

// One contiguous block of memory for everything a step touches: on huge pages where the system has
// them, and touched once at the start, because first-touch page faults in the middle of a step cost
// more than its arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/Status.h"

namespace gradc::rt {

class ThreadPool;

/// What a control group leaves in bytes: its limit less what it uses, of which page cache can be
/// dropped. A negative limit or usage is not known, and leaves everything. The three are read one
/// after another, so that there may be more cache than usage.
int64_t groupHeadroom(int64_t limit, int64_t usage, int64_t cache);

/// Memory that this process may still take, in bytes: what the system reports as available, lowered
/// by the limits of the control groups it runs in. INT64_MAX where neither is known.
int64_t availableMemoryBytes();

/// The resident peak of this process (VmHWM) in bytes; 0 where it is not known.
int64_t residentPeakBytes();

/// Zeroed memory, aligned to 2 MiB. Movable, released by the destructor.
class Arena {
public:
  Arena() = default;
  Arena(Arena &&other) noexcept { *this = std::move(other); }
  Arena &operator=(Arena &&other) noexcept;
  ~Arena();

  /// Maps and touches `bytes` (0 is allowed: an empty arena). Refuses with a machine status, before
  /// touching anything, when more than the available memory is asked for; `what` names the memory
  /// in that message.
  static Expected<Arena> create(int64_t bytes, const std::string &what, ThreadPool &pool);

  std::byte *data() const { return data_; }
  int64_t size() const { return size_; }

  /// Fills the arena with a pattern; highWater() then tells how many bytes from its start up to the
  /// last one that was written since.
  void fillPattern(ThreadPool &pool);
  int64_t highWater() const;

private:
  void *mapping_ = nullptr;
  std::size_t mappingBytes_ = 0;
  std::byte *data_ = nullptr;
  int64_t size_ = 0;
};

/// A size in bytes as people write it: `2.31 GiB`.
std::string formatBytes(int64_t bytes);

} // namespace gradc::rt

// The planner's vocabulary: a buffer has a size and a lifespan, a plan gives every buffer an offset
// in one arena. Plain data, so that the compiler, the simulator and the tests can all speak it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradc::planner {

/// Something that must be in memory while some commands of the step run.
///
/// A buffer *reserves* its size rounded up to its alignment, and the padding is its own: a kernel
/// may load and store whole vectors over the tail without touching a neighbour.
struct Buffer {
  int64_t size = 0;       ///< bytes; zero is allowed and reserves nothing
  int64_t lower = 0;      ///< index of the first command that needs it
  int64_t upper = 0;      ///< one past the last command that needs it; equal to lower: never live
  int64_t alignment = 64; ///< bytes, a power of two
};

/// Where every buffer lies.
struct Plan {
  /// Bytes from the arena's start, one for each buffer, in the order given. Buffers that reserve
  /// nothing (size zero or an empty lifespan) are at 0.
  std::vector<int64_t> offsets;
  int64_t peak = 0;        ///< bytes of arena needed: the largest offset + reserved size
  int64_t lowerBound = 0;  ///< the largest sum of reserved sizes live at one time; peak >= this
  std::string strategy;    ///< what found the plan, e.g. "first-fit by size"
  int64_t searchSteps = 0; ///< steps of branch and bound spent; 0 where first-fit was good enough
  bool optimal = false;    ///< no plan with a lower peak exists
  std::string error;       ///< empty, or the first thing wrong with the buffers; then no offsets
};

} // namespace gradc::planner

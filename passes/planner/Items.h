// What the planner's algorithms work on: buffers that reserve space, on a timeline cut into
// sections at every point where some buffer's life begins or ends.
#pragma once

#include <cstdint>
#include <vector>

namespace gradc::planner {

/// A buffer made ready for packing. The lifespan counts sections: [first, last).
struct Item {
  int64_t size; ///< bytes reserved, a multiple of the alignment, > 0
  int64_t alignment;
  int32_t first, last;

  int64_t length() const { return last - first; }
};

/// Items and, by the same index, where they were put.
struct Packing {
  std::vector<int64_t> offsets;
  int64_t peak = 0;
};

inline int64_t alignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) & -alignment;
}

} // namespace gradc::planner

// Turns buffers into items on a short timeline, split where no buffer crosses.
#pragma once

#include "passes/planner/Buffer.h"
#include "passes/planner/Items.h"

#include <string>
#include <vector>

namespace gradc::planner {

/// Items that share no time with any other component: it can be packed by itself.
struct Component {
  std::vector<Item> items;
  std::vector<size_t> buffers; ///< by item: the index of its buffer
  int32_t sections = 0;
};

/// What is wrong with `buffers`, or an empty string.
std::string findError(const std::vector<Buffer> &buffers);

/// The components of `buffers`, in order of time, without the buffers that reserve nothing.
/// Expects valid buffers. A section is a maximal set of buffers live at once, so a timeline has at
/// most as many sections as buffers, and two items overlap exactly if their buffers do.
std::vector<Component> makeComponents(const std::vector<Buffer> &buffers);

/// The largest sum of item sizes over one section.
int64_t largestSection(const Component &component);

} // namespace gradc::planner

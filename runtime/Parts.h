// Launches in parts (GradcLaunch in runtime/Abi.h): which part a task belongs to, and the table
// that kernels of GPUs find their buffers in.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/Abi.h"

namespace gradc::rt {

/// The number of the part that `task` of a launch in parts belongs to.
inline int64_t partOf(const GradcLaunch &launch, int64_t task) {
  const GradcPart *end = launch.parts + launch.partCount;
  const GradcPart *next =
      std::upper_bound(launch.parts, end, task, [](int64_t number, const GradcPart &part) {
        return number < part.firstTask;
      });
  return next - launch.parts - 1;
}

/// The words of a launch's table, where the buffers of its parts, in order, have these addresses.
inline std::vector<int64_t> partTable(const GradcLaunch &launch,
                                      const std::vector<int64_t> &addresses) {
  std::vector<int64_t> words;
  for (int64_t part = 0; part < launch.partCount; ++part)
    words.push_back(launch.parts[part].firstTask);
  for (int64_t part = 0; part < launch.partCount; ++part) {
    words.push_back(launch.parts[part].extent);
    auto first = addresses.begin() + part * launch.bufferCount;
    words.insert(words.end(), first, first + launch.bufferCount);
  }
  return words;
}

} // namespace gradc::rt

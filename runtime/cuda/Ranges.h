// NVTX ranges: what a profiler shows above the GPU's time line. No library of NVIDIA's takes part:
// a profiler that is attached names one of its own in the environment, which is loaded and asked
// for the two functions that are called, as NVTX 3 has it. Without a profiler nothing happens.
#pragma once

namespace gradc::rt::cuda {

/// A range of this thread from construction to the end of the scope; ranges nest.
class Range {
public:
  explicit Range(const char *name);
  ~Range();
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;
};

} // namespace gradc::rt::cuda

// --autotune: which of the library's algorithms multiplies a shape fastest on this GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/MeasurementCache.h"
#include "runtime/cuda/CublasLtPlan.h"

namespace gradc::rt {

/// What measuring needs of a device.
struct TuningDevice {
  /// Seconds from when the device begins what `work` queues to its end.
  std::function<Expected<double>(const std::function<Status()> &work)> seconds;
  /// Calls `work` and puts the bytes back to what they were before.
  std::function<Status(std::byte *begin, int64_t bytes, const std::function<Status()> &work)>
      preserving;
};

/// Measures each shape once and keeps the choice in the user's cache, from run to run.
class CublasLtTuner {
public:
  /// `cache` is of this GPU and this version of the library.
  CublasLtTuner(TuningDevice device, MeasurementCache cache)
      : device_(std::move(device)), cache_(std::move(cache)) {}

  /// Chooses the plan's algorithm: the one that the cache names where the library still offers it,
  /// else the fastest of those that it offers. C is as before, but where the product overwrites it.
  Status choose(CublasLtPlan &plan, const GradcGemm &gemm, const GemmAddresses &addresses,
                cublaslt::Stream stream);

  /// Each shape's choice and its times, a line each, in the order of choosing.
  const std::vector<std::string> &lines() const { return lines_; }
  /// Why choices could not be kept; empty where they were.
  const std::string &warning() const { return warning_; }

private:
  Expected<double> medianSeconds(CublasLtPlan &plan, const GemmAddresses &addresses,
                                 cublaslt::Stream stream);
  Status measure(CublasLtPlan &plan, const std::vector<cublaslt::HeuristicResult> &candidates,
                 const GemmAddresses &addresses, cublaslt::Stream stream);

  TuningDevice device_;
  MeasurementCache cache_;
  std::vector<std::string> lines_;
  std::string warning_;
};

} // namespace gradc::rt

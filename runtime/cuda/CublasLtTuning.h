// --autotune: which of the library's algorithms multiplies a shape fastest on this GPU.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/MeasurementCache.h"
#include "runtime/cuda/CublasLtPlan.h"

namespace gradc::rt {

/// Measures each shape once and keeps the choice in the user's cache, from run to run.
class CublasLtTuner {
public:
  /// `cache` is of this GPU and this version of the library.
  CublasLtTuner(cuda::TuningDevice device, MeasurementCache cache)
      : device_(std::move(device)), cache_(std::move(cache)) {}

  /// Chooses the plan's algorithm: the one that the cache names where the library still offers it,
  /// else the fastest of those that it offers. C is as before, but where the product overwrites it.
  Status choose(CublasLtPlan &plan, const GradcGemm &gemm, const cuda::ProductAddresses &addresses,
                cuda::Stream stream);

  /// Each shape's choice and its times, a line each, in the order of choosing.
  const std::vector<std::string> &lines() const { return lines_; }
  /// Why choices could not be kept; empty where they were.
  const std::string &warning() const { return warning_; }

private:
  Expected<double> medianSeconds(CublasLtPlan &plan, const cuda::ProductAddresses &addresses,
                                 cuda::Stream stream);
  Status measure(CublasLtPlan &plan, const std::vector<cublaslt::HeuristicResult> &candidates,
                 const cuda::ProductAddresses &addresses, cuda::Stream stream);

  cuda::TuningDevice device_;
  MeasurementCache cache_;
  std::vector<std::string> lines_;
  std::string warning_;
};

} // namespace gradc::rt

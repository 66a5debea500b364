// What is measured in one optimizer step, as every reporter takes it.
#pragma once

#include <cstdint>
#include <optional>

namespace gradc::rt {

struct StepMetrics {
  uint64_t step = 0;   ///< 1 for the first
  double loss = 0;     ///< mean over the step's valid labels, in nats
  double gradNorm = 0; ///< global L2 norm before clipping
  double learningRate = 0;
  uint64_t tokens = 0; ///< input tokens consumed by this step
  double stepMs = 0;   ///< wall time of the step, milliseconds
  double tokensPerSecond = 0;
  double flopsPerSecond = 0;
  std::optional<double> mfu;     ///< model FLOP utilisation, 0 to 1, where the peak is known
  bool skipped = false;          ///< the update was not applied
  std::optional<double> valLoss; ///< where validation ran after this step
};

} // namespace gradc::rt

// Learning-rate schedules: warm-up from 0, then a decay down to a floor.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/Status.h"

namespace gradc::rt {

enum class LrDecay { cosine, linear, wsd, constant };

struct Schedule {
  double peak = 3e-4;
  double floor = 3e-5; ///< `constant` has no use for it
  int64_t warmup = 0;  ///< steps
  int64_t steps = 1;   ///< of the whole run, at which the floor is reached
  LrDecay decay = LrDecay::cosine;

  /// The rate of step `step`, counted from 1. Warm-up rises linearly and reaches the peak at step
  /// `warmup`; the last step has the floor. `wsd` (warm-up, stable, decay) stays at the peak but
  /// for the last tenth of the steps, over which it falls linearly.
  double rate(int64_t step) const;
};

/// A user status when the numbers contradict each other.
Status validate(const Schedule &schedule);

} // namespace gradc::rt

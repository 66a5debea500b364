// Learning-rate schedules.
#include "runtime/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace gradc::rt {

double Schedule::rate(int64_t step) const {
  if (step < warmup)
    return peak * double(step) / double(warmup);
  if (decay == LrDecay::constant)
    return peak;
  int64_t begin = std::max<int64_t>(warmup, 0);
  if (decay == LrDecay::wsd)
    begin = std::max(begin, steps - (steps + 9) / 10);
  if (step <= begin || steps <= begin)
    return peak;
  double progress = std::min(1.0, double(step - begin) / double(steps - begin));
  double share =
      decay == LrDecay::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * progress)) : 1 - progress;
  return floor + (peak - floor) * share;
}

Status validate(const Schedule &schedule) {
  if (!(schedule.peak >= 0) || !std::isfinite(schedule.peak))
    return Status::user(
        fmt::format("--lr {}: expected a finite number not below 0", schedule.peak));
  if (!(schedule.floor >= 0) || !(schedule.floor <= schedule.peak))
    return Status::user(fmt::format("--min-lr {}: expected a number from 0 to --lr, which is {}",
                                    schedule.floor, schedule.peak));
  if (schedule.warmup < 0)
    return Status::user(fmt::format("--warmup {}: expected a number of steps", schedule.warmup));
  return Status();
}

} // namespace gradc::rt

// Scans of parameters and gradients for the first value that is not finite.
#include "runtime/app/FiniteCheck.h"

#include <atomic>
#include <cmath>

#include <fmt/format.h>

namespace gradc::rt {
namespace {

int64_t countNonFinite(const float *values, int64_t count, ThreadPool &pool) {
  constexpr int64_t chunk = 1 << 18;
  std::atomic<int64_t> total{0};
  pool.parallelFor((count + chunk - 1) / chunk, [&](int64_t task, int) {
    int64_t found = 0;
    for (int64_t i = task * chunk; i < std::min(count, (task + 1) * chunk); ++i)
      found += !std::isfinite(values[i]);
    total += found;
  });
  return total;
}

Status report(int64_t step, const char *kind, const Slot &slot, int64_t count) {
  return Status::user(fmt::format("step {}: {} {} is the first tensor that is not finite ({} of {} "
                                  "elements); lower --lr, raise --warmup or look at the data",
                                  step, kind, slot.name, count, slot.elements()));
}

} // namespace

Status FiniteGuard::note(int64_t step, double loss, double gradNorm) {
  if (std::isfinite(loss) && std::isfinite(gradNorm)) {
    inARow_ = 0;
    return Status();
  }
  if (++inARow_ < nonFiniteStepLimit)
    return Status();
  return Status::user(fmt::format(
      "step {}: loss or gradient norm was not finite in {} steps in a row, first in step {}; lower "
      "--lr or raise --warmup; --check-nans names the first tensor",
      step, inARow_, step - inARow_ + 1));
}

Status findNonFinite(Session &session, int64_t step) {
  for (const Slot &slot : session.metadata().state)
    if (slot.role == SlotRole::parameter)
      if (int64_t count = countNonFinite(session.floats(slot), slot.elements(), session.pool()))
        return report(step, "parameter", slot, count);
  GRADC_RETURN_IF_ERROR(session.run("gradients"));
  GRADC_ASSIGN_OR_RETURN(double loss, session.readScalar("gradients.loss"));
  if (!std::isfinite(loss))
    return Status::user(fmt::format("step {}: the loss is {} though every parameter is finite; "
                                    "lower --lr or raise --warmup",
                                    step, loss));
  // The backward pass goes from the last parameter to the first.
  const auto &gradients = session.metadata().gradients;
  for (auto slot = gradients.rbegin(); slot != gradients.rend(); ++slot)
    if (int64_t count = countNonFinite(session.gradient(*slot), slot->elements(), session.pool()))
      return report(step, "the gradient of", *slot, count);
  return Status();
}

} // namespace gradc::rt

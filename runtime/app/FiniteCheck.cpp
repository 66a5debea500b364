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

Status check(int64_t step, const char *kind, const Slot &slot, const float *values,
             ThreadPool &pool) {
  int64_t count = countNonFinite(values, slot.elements(), pool);
  if (count == 0)
    return Status();
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
      GRADC_RETURN_IF_ERROR(session.accessFloats(slot, Access::read, [&](const float *values) {
        return check(step, "parameter", slot, values, session.pool());
      }));
  GRADC_RETURN_IF_ERROR(session.run("gradients"));
  GRADC_ASSIGN_OR_RETURN(double loss, session.readScalar("gradients.loss"));
  if (!std::isfinite(loss))
    return Status::user(fmt::format("step {}: the loss is {} though every parameter is finite; "
                                    "lower --lr or raise --warmup",
                                    step, loss));
  // The backward pass goes from the last parameter to the first.
  const auto &gradients = session.metadata().gradients;
  for (auto slot = gradients.rbegin(); slot != gradients.rend(); ++slot)
    GRADC_RETURN_IF_ERROR(session.readGradient(*slot, [&](const float *values) {
      return check(step, "the gradient of", *slot, values, session.pool());
    }));
  return Status();
}

} // namespace gradc::rt

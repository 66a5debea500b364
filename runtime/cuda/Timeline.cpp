// See Timeline.h.
#include "runtime/cuda/Timeline.h"

namespace gradc::rt::cuda {

Status Timeline::prepare(int64_t launches) {
  while (int64_t(events_.size()) <= launches) {
    GRADC_ASSIGN_OR_RETURN(auto event, createEvent(driver_, eventDefault));
    events_.push_back(std::move(event));
  }
  return {};
}

Status Timeline::mark() {
  if (marked_ == events_.size())
    return Status::defect("a program launches more than in its first run; please report this");
  return driver_.eventRecordWithFlags(events_[marked_++].get(), stream_, eventRecordExternal);
}

Status Timeline::run(const GradcProgram &program, const std::function<Status()> &issue,
                     const LaunchObserver &observe) {
  auto marked = [&] {
    marked_ = 0;
    launches_.clear();
    GRADC_RETURN_IF_ERROR(mark());
    return issue();
  };
  GRADC_RETURN_IF_ERROR(graph_.launch(program, marked));
  GRADC_RETURN_IF_ERROR(driver_.streamSynchronize(stream_));
  return report(observe);
}

/// On the host's clock the last launch ends now, and each begins where the one before ended.
Status Timeline::report(const LaunchObserver &observe) {
  auto next = std::chrono::steady_clock::now();
  for (std::size_t i = launches_.size(); i-- > 0;) {
    float milliseconds = 0;
    GRADC_RETURN_IF_ERROR(
        driver_.eventElapsedTime(&milliseconds, events_[i].get(), events_[i + 1].get()));
    LaunchTimes &times = launches_[i].times;
    times.end = next;
    times.begin = next -= std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<float, std::milli>(milliseconds));
  }
  for (const LaunchRecord &launch : launches_)
    observe(launch);
  return {};
}

} // namespace gradc::rt::cuda

// See Streams.h.
#include "runtime/cuda/Streams.h"

namespace gradc::rt::cuda {

Status Streams::prepare(const GradcStreamEvent &event) {
  while (int64_t(others_.size()) < event.stream) {
    GRADC_ASSIGN_OR_RETURN(auto stream, createStream(driver_));
    others_.push_back(std::move(stream));
  }
  while (int64_t(events_.size()) <= event.event) {
    GRADC_ASSIGN_OR_RETURN(auto made, createEvent(driver_, eventWithoutTimes));
    events_.push_back(std::move(made));
  }
  return {};
}

Status Streams::record(const GradcStreamEvent &event) {
  return driver_.eventRecord(events_[std::size_t(event.event)].get(), get(event.stream));
}

Status Streams::wait(const GradcStreamEvent &event) {
  return driver_.streamWaitEvent(get(event.stream), events_[std::size_t(event.event)].get(), 0);
}

Stream Streams::get(int64_t number) const {
  return number == 0 ? first_ : others_[std::size_t(number - 1)].get();
}

} // namespace gradc::rt::cuda

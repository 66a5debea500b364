// The driver's functions: streams and events.
#include "tests/cuda/FakeDriver/Calls.h"

using gradc::rt::cuda::fake::releaseFrom;

extern "C" {

Result cuStreamCreate(Stream *stream, unsigned flags) {
  ENTER_READY(cuStreamCreate);
  NEED(flags <= 1, errorInvalidValue);
  machine().streams.push_back(*stream = new StreamObject);
  return success;
}
Result cuStreamDestroy_v2(Stream stream) {
  Result told = machine().enter("cuStreamDestroy_v2");
  return releaseFrom(machine().streams, stream, told);
}
Result cuStreamSynchronize(Stream stream) {
  ENTER_READY(cuStreamSynchronize);
  NEED_NO_CAPTURE();
  return machine().drain(stream);
}
Result cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  ENTER_READY(cuStreamWaitEvent);
  NEED(machine().events.count(event) && flags == 0, errorInvalidHandle);
  return machine().wait(stream, event);
}
Result cuEventCreate(Event *event, unsigned flags) {
  ENTER_READY(cuEventCreate);
  NEED(flags == eventDefault || flags == eventWithoutTimes, errorInvalidValue);
  machine().events.insert(*event = new EventObject{flags == eventDefault});
  return success;
}
Result cuEventDestroy_v2(Event event) {
  Result told = machine().enter("cuEventDestroy_v2");
  return releaseFrom(machine().events, event, told);
}
Result cuEventRecord(Event event, Stream stream) {
  ENTER_READY(cuEventRecord);
  NEED(machine().events.count(event), errorInvalidHandle);
  return machine().record(event, stream);
}
Result cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  ENTER_READY(cuEventRecordWithFlags);
  NEED(machine().events.contains(event), errorInvalidHandle);
  if (flags == 0)
    return machine().record(event, stream);
  // Outside of a capture there is no node to make.
  NEED(flags == eventRecordExternal && stream->capture, errorInvalidValue);
  return machine().recordExternal(event, stream);
}
Result cuEventSynchronize(Event event) {
  ENTER_READY(cuEventSynchronize);
  NEED(machine().events.count(event) && event->capture == 0, errorInvalidHandle);
  return machine().reach(event, event->recorded);
}
Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER_READY(cuEventElapsedTime);
  for (Event event : {begin, end}) {
    NEED(machine().events.count(event) && event->hasTimes && event->recorded > 0 &&
             event->capture == 0,
         errorInvalidHandle);
    NEED(event->done == event->recorded, errorInvalidValue);
  }
  *milliseconds = float(end->milliseconds - begin->milliseconds);
  return success;
}

int gradcFakeQueue(void *stream, int (*work)(const void *), const void *data,
                   unsigned long long bytes) {
  if (Result result = machine().ready(); result != success)
    return result;
  std::vector<char> copy(static_cast<const char *>(data), static_cast<const char *>(data) + bytes);
  return queueWork(static_cast<Stream>(stream), [=] { return work(copy.data()); });
}

} // extern "C"

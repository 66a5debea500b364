// Programs as CUDA graphs: the launches of a run, captured once and replayed by one call.
#pragma once

#include <functional>
#include <unordered_map>

#include "runtime/Abi.h"
#include "runtime/cuda/Driver.h"

namespace gradc::rt::cuda {

class Graphs {
public:
  Graphs(const Driver &driver, Stream stream) : driver_(driver), stream_(stream) {}

  /// Queues a program's graph on the stream. Where there is none yet `issue` launches the program,
  /// and what it launches is captured, not run: on this stream, and on those that wait for an event
  /// of it and that it waits for at the end.
  Status launch(const GradcProgram &program, const std::function<Status()> &issue);

private:
  Expected<Owned<GraphExec>> capture(const std::function<Status()> &issue);

  const Driver &driver_;
  Stream stream_;
  std::unordered_map<const GradcProgram *, Owned<GraphExec>> graphs_;
};

} // namespace gradc::rt::cuda

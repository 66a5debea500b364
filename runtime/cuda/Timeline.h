// When each launch of a replayed program ran, by the GPU's clock: a graph of the program on one
// stream, with an event before its first launch and after each. A launch's time is then what lies
// between two events: the kernel and the step from one node of the graph to the next, and nothing
// of what the host takes to queue it.
#pragma once

#include <vector>

#include "runtime/Device.h"
#include "runtime/cuda/Graphs.h"

namespace gradc::rt::cuda {

class Timeline {
public:
  Timeline(const Driver &driver, Stream stream)
      : driver_(driver), stream_(stream), graph_(driver, stream) {}

  /// Makes the events of a program with as many launches, before anything is captured.
  Status prepare(int64_t launches);
  /// Runs the program, waits for it, and calls `observe` with the times of each launch. `issue`
  /// launches it while it is captured, and calls mark() and add() after each launch.
  Status run(const GradcProgram &program, const std::function<Status()> &issue,
             const LaunchObserver &observe);
  /// Records the next event; a defect where more are recorded than were prepared.
  Status mark();
  /// What the launch is that the last event followed; its times are not looked at.
  void add(const LaunchRecord &launch) { launches_.push_back(launch); }

private:
  Status report(const LaunchObserver &observe);

  const Driver &driver_;
  Stream stream_;
  std::vector<Owned<Event>> events_; ///< one more than launches; outlive the graph
  Graphs graph_;
  std::size_t marked_ = 0;
  std::vector<LaunchRecord> launches_;
};

} // namespace gradc::rt::cuda

// See Graphs.h.
#include "runtime/cuda/Graphs.h"

namespace gradc::rt::cuda {

Expected<Owned<GraphExec>> Graphs::capture(const std::function<Status()> &issue) {
  GRADC_RETURN_IF_ERROR(driver_.streamBeginCapture(stream_, captureThreadLocal));
  Status issued = issue();
  // The capture has to end, whatever became of it.
  Graph graph = nullptr;
  Status ended = driver_.streamEndCapture(stream_, &graph);
  Owned<Graph> captured(driver_.graphDestroy, graph);
  GRADC_RETURN_IF_ERROR(issued);
  GRADC_RETURN_IF_ERROR(ended);
  GraphExec executable = nullptr;
  GRADC_RETURN_IF_ERROR(driver_.graphInstantiate(&executable, captured.get(), 0));
  return Owned<GraphExec>(driver_.graphExecDestroy, executable);
}

Status Graphs::launch(const GradcProgram &program, const std::function<Status()> &issue) {
  auto known = graphs_.find(&program);
  if (known == graphs_.end()) {
    GRADC_ASSIGN_OR_RETURN(auto graph, capture(issue));
    known = graphs_.emplace(&program, std::move(graph)).first;
  }
  return driver_.graphLaunch(known->second.get(), stream_);
}

} // namespace gradc::rt::cuda

// The driver's functions: captures and graphs.
#include "tests/cuda/FakeDriver/Calls.h"

using gradc::rt::cuda::fake::releaseFrom;

extern "C" {

Result cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  ENTER_READY(cuStreamBeginCapture_v2);
  return machine().beginCapture(stream);
}
Result cuStreamEndCapture(Stream stream, Graph *graph) {
  Result told = machine().enter("cuStreamEndCapture");
  *graph = nullptr;
  GraphObject *captured = nullptr;
  Result result = machine().endCapture(stream, captured);
  if (told != success)
    result = told;
  if (result == success)
    *graph = captured;
  else if (captured)
    (void)releaseFrom(machine().graphs, captured, success);
  return result;
}
Result cuGraphInstantiateWithFlags(GraphExec *executable, Graph graph, unsigned long long flags) {
  ENTER_READY(cuGraphInstantiateWithFlags);
  NEED(machine().graphs.count(graph) && flags == 0, errorInvalidHandle);
  machine().executables.insert(*executable = new GraphExecObject{graph->steps});
  return success;
}
Result cuGraphLaunch(GraphExec executable, Stream stream) {
  ENTER_READY(cuGraphLaunch);
  NEED(machine().executables.count(executable), errorInvalidHandle);
  return machine().launch(*executable, stream);
}
Result cuGraphDestroy(Graph graph) {
  Result told = machine().enter("cuGraphDestroy");
  return releaseFrom(machine().graphs, graph, told);
}
Result cuGraphExecDestroy(GraphExec executable) {
  Result told = machine().enter("cuGraphExecDestroy");
  return releaseFrom(machine().executables, executable, told);
}

} // extern "C"

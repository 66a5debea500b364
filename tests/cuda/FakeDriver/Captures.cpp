// Machine: captures, and graphs as they are launched.
#include "tests/cuda/FakeDriver/Machine.h"

#include <algorithm>
#include <utility>

namespace gradc::rt::cuda::fake {

Result Machine::beginCapture(StreamObject *stream) {
  if (stream->capture)
    return errorInvalidValue;
  auto *graph = new GraphObject;
  graph->id = ++captures_;
  graph->before = {{0}};
  graphs.insert(graph);
  stream->capture = graph;
  stream->branch = 0;
  return success;
}

Result Machine::endCapture(StreamObject *stream, GraphObject *&graph) {
  if (!stream->capture || stream->branch != 0)
    return errorInvalidValue;
  graph = stream->capture;
  for (StreamObject *each : streams)
    if (each->capture == graph)
      each->capture = nullptr;
  bool isJoined = true;
  for (std::size_t branch = 0; branch < graph->before.size(); ++branch)
    isJoined &= graph->before[0][branch] == graph->before[branch][branch];
  if (graph->isBroken)
    return errorStreamCaptureInvalidated;
  return isJoined ? Result(success)
                  : complain(errorStreamCaptureUnjoined, "a capture ends before all its streams");
}

/// The stream becomes a branch of the capture that the event was recorded in.
Result Machine::join(StreamObject *stream, const EventObject &event) {
  auto of = std::find_if(graphs.begin(), graphs.end(),
                         [&](const GraphObject *graph) { return graph->id == event.capture; });
  bool isOpen = of != graphs.end() && std::any_of(streams.begin(), streams.end(),
                                                  [&](auto *each) { return each->capture == *of; });
  if (!isOpen || (stream->capture && stream->capture != *of))
    return complain(errorStreamCaptureIsolation, "an event of another capture is waited for");
  if (!stream->capture) {
    stream->capture = *of;
    stream->branch = (*of)->before.size();
    for (std::vector<uint64_t> &each : (*of)->before)
      each.push_back(0);
    (*of)->before.emplace_back(stream->branch + 1, 0);
  }
  return success;
}

Result Machine::capture(StreamObject *stream, Operation operation) {
  GraphObject &graph = *stream->capture;
  std::vector<uint64_t> &before = graph.before[stream->branch];
  if (operation.isExternal) {
    ++before[stream->branch];
    graph.steps.push_back({stream->branch, std::move(operation)});
    return success;
  }
  EventObject *event = std::exchange(operation.event, nullptr);
  switch (operation.kind) {
  case Operation::Kind::work:
    ++before[stream->branch];
    break;
  case Operation::Kind::record:
    event->capture = graph.id;
    event->number = operation.number = ++graph.records;
    event->before = before;
    break;
  case Operation::Kind::wait:
    if (event->capture != graph.id) {
      graph.isBroken = true;
      return complain(errorStreamCaptureIsolation, "a capture waits for an event outside of it");
    }
    operation.number = event->number;
    for (std::size_t branch = 0; branch < event->before.size(); ++branch)
      before[branch] = std::max(before[branch], event->before[branch]);
    break;
  }
  graph.steps.push_back({stream->branch, std::move(operation)});
  return success;
}

Result Machine::launch(const GraphExecObject &graph, StreamObject *stream) {
  if (stream->capture)
    return complain(errorStreamCaptureUnsupported, "a graph is launched into a capture");
  std::map<uint64_t, std::shared_ptr<EventObject>> own; // by the number of their record
  for (const GraphObject::Step &step : graph.steps) {
    while (branches_.size() < step.branch)
      branches_.push_back(std::make_unique<StreamObject>());
    StreamObject *branch = step.branch == 0 ? stream : branches_[step.branch - 1].get();
    Operation operation = step.operation;
    if (operation.kind == Operation::Kind::wait && int(step.branch) == deafBranch_)
      continue;
    if (operation.isExternal) {
      if (!events.contains(operation.event))
        return complain(errorInvalidValue, "a graph records an event that does not exist");
      operation.number = ++operation.event->recorded;
      operation.event->stream = branch;
    } else if (operation.kind != Operation::Kind::work) {
      std::shared_ptr<EventObject> &event = own[operation.number];
      if (!event)
        event = std::make_shared<EventObject>();
      operation.own = event;
      operation.event = event.get();
      operation.number = 1;
      if (operation.kind == Operation::Kind::record) {
        event->recorded = 1;
        event->stream = branch;
      }
    }
    branch->queue.push_back(std::move(operation));
  }
  runEager();
  return success;
}

Result Machine::refuseInCapture() {
  bool any = false;
  for (StreamObject *stream : streams)
    if (stream->capture)
      any = stream->capture->isBroken = true;
  return any ? complain(errorStreamCaptureUnsupported, "a call that no capture allows")
             : Result(success);
}

} // namespace gradc::rt::cuda::fake

// See EventOrder.h.
#include "passes/streams/EventOrder.h"

using namespace mlir;

namespace gradc::streams {
namespace {

void raise(Clock &clock, const Clock &to) {
  for (size_t stream = 0; stream < clock.size(); ++stream)
    clock[stream] = std::max(clock[stream], to[stream]);
}

} // namespace

int64_t streamOfCommand(Operation *command) {
  if (auto launch = dyn_cast<exec::LaunchOp>(command))
    return launch.getStream();
  return cast<exec::GemmOp>(command).getStream();
}

EventOrder::EventOrder(ArrayRef<Operation *> commands, Block &block, Operation *end)
    : commands(commands), block(block), end(end) {
  for (Operation *command : commands)
    streams = std::max(streams, static_cast<size_t>(streamOfCommand(command)) + 1);
}

/// Stream's next command, at `slot`, has to follow `after`: by an event, where it does not yet.
void EventOrder::follow(size_t stream, const Clock &after, size_t slot) {
  for (size_t other = 0; other < streams; ++other) {
    if (other == stream || after[other] <= known[stream][other])
      continue;
    const Point &point = points[other][static_cast<size_t>(after[other])];
    events.push_back({point.slot, slot, static_cast<int64_t>(other), static_cast<int64_t>(stream)});
    raise(known[stream], point.known);
  }
}

void EventOrder::findEvents() {
  Clock none(streams, -1), begin = none;
  begin[0] = 0; // number 0 of stream 0 is the region's begin
  known.assign(streams, none);
  known[0] = begin;
  points.assign(streams, {});
  points[0].push_back({0, begin});
  LastAccess last(streams);
  for (auto [i, command] : llvm::enumerate(commands)) {
    auto stream = static_cast<size_t>(streamOfCommand(command));
    auto number = static_cast<int64_t>(points[stream].size());
    SmallVector<Access> accesses = accessesOf(command);
    Clock after = begin;
    for (const Access &access : accesses)
      last.require(access, after);
    follow(stream, after, i);
    known[stream][stream] = number;
    points[stream].push_back({i + 1, known[stream]});
    for (const Access &access : accesses)
      last.note(access, stream, number);
  }
  Clock all = none;
  for (size_t stream = 0; stream < streams; ++stream)
    all[stream] = static_cast<int64_t>(points[stream].size()) - 1;
  follow(0, all, commands.size());
}

void EventOrder::record(OpBuilder &builder, size_t slot) {
  for (auto [i, event] : llvm::enumerate(events)) {
    if (event.recordSlot != slot)
      continue;
    auto free = llvm::find(isFree, true) - isFree.begin();
    if (static_cast<size_t>(free) == isFree.size())
      isFree.push_back(true);
    isFree[static_cast<size_t>(free)] = false;
    numbers[i] = free;
    exec::RecordOp::create(builder, builder.getUnknownLoc(), free, event.from);
  }
}

void EventOrder::wait(OpBuilder &builder, size_t slot) {
  for (auto [i, event] : llvm::enumerate(events)) {
    if (event.waitSlot != slot)
      continue;
    exec::WaitOp::create(builder, builder.getUnknownLoc(), numbers[i], event.to);
    isFree[static_cast<size_t>(numbers[i])] = true;
  }
}

int64_t EventOrder::insert() {
  if (streams == 1)
    return 0;
  findEvents();
  numbers.assign(events.size(), 0);
  OpBuilder builder(block.getParentOp()->getContext());
  builder.setInsertionPoint(commands.front());
  record(builder, 0);
  for (auto [i, command] : llvm::enumerate(commands)) {
    builder.setInsertionPoint(command);
    wait(builder, i);
    builder.setInsertionPointAfter(command);
    record(builder, i + 1);
  }
  if (end)
    builder.setInsertionPoint(end);
  else
    builder.setInsertionPointToEnd(&block);
  wait(builder, commands.size());
  return static_cast<int64_t>(events.size());
}

} // namespace gradc::streams

// Orders the streams of a region by events. A region is a program up to its repeat, one round of
// the repeat, or what follows it; it begins and ends on stream 0.
#pragma once

#include "passes/streams/LastAccess.h"

namespace gradc::streams {

class EventOrder {
public:
  /// `commands` of `block` in their order, up to `end`, or to the block's end where that is null.
  EventOrder(llvm::ArrayRef<mlir::Operation *> commands, mlir::Block &block, mlir::Operation *end);

  /// Inserts exec.record and exec.wait: no command waits for more than it needs, and for two
  /// streams no event could be left out. Returns how many events.
  int64_t insert();

private:
  /// Behind a command, or the region's begin, and all that was known there to have been before.
  struct Point {
    size_t slot = 0; ///< in front of so many commands
    Clock known;
  };
  /// What is recorded at a slot on one stream, and waited for at another.
  struct Event {
    size_t recordSlot, waitSlot;
    int64_t from, to;
  };

  void findEvents();
  void follow(size_t stream, const Clock &after, size_t slot);
  void record(mlir::OpBuilder &builder, size_t slot);
  void wait(mlir::OpBuilder &builder, size_t slot);

  llvm::ArrayRef<mlir::Operation *> commands;
  mlir::Block &block;
  mlir::Operation *end;
  size_t streams = 1;
  std::vector<Clock> known;               ///< of each stream, what its next command follows
  std::vector<std::vector<Point>> points; ///< of each stream, by the command's number
  std::vector<Event> events;              ///< in the order of their waits
  std::vector<int64_t> numbers;           ///< of the events, where recorded and not yet waited for
  std::vector<bool> isFree;               ///< by number
};

/// The stream of a launch or product.
int64_t streamOfCommand(mlir::Operation *command);

} // namespace gradc::streams

// How a row program is laid over the threads of a GPU: a table of a few numbers, all of them known
// when the kernel is printed.
//
// A block holds `teams` of threads. A team takes one row at a time and its threads a vector of
// columns each, side by side, so that a warp reads memory without gaps. Where the row fits, a
// thread's vectors stay in its registers from the program's first loop to the last ("held"): each
// matrix is then read once. Of rows that are too long for registers, what several loops read is
// kept in shared memory, each thread's columns for itself: all of it, or as many columns as fit. A
// program that reduces nothing does not need a whole row in one place, and its rows are cut into
// slices, tasks of their own.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "ir/row/RowProgram.h"

namespace gradc::codegen::gpu {

/// A matrix whose row is kept in shared memory, `offset` bytes into it, from the loop that loads or
/// stores it on: its first RowSchedule::keptColumns.
struct KeptRow {
  int32_t buffer;
  int64_t offset;
};

struct RowSchedule {
  /// Elements of a vector. Divides all row strides, and the columns but for long rows that are not
  /// held: their last elements are taken one a thread.
  int64_t lanes = 1;
  int64_t warps = 1;   ///< of a team
  int64_t teams = 1;   ///< of a block
  int64_t rows = 1;    ///< of a task
  int64_t slices = 1;  ///< a row's parts, each in tasks of its own
  int64_t vectors = 1; ///< of a thread at a time: all that it has of a row, where held
  bool held = true;
  std::vector<KeptRow> kept; ///< where rows are not held
  int64_t keptColumns = 0;   ///< of each of them: all, or whole steps of the team
  int64_t keptBytes = 0;     ///< of a block
  /// Where not all are kept: what a loop reads again is still in the second-level cache.
  bool restIsCached = false;
  int64_t blocks = 0; ///< that a multiprocessor should hold; 0: as many as it happens to

  int64_t teamThreads() const { return 32 * warps; }
  int64_t threads() const { return teamThreads() * teams; }
  /// Columns from one vector of a thread to its next.
  int64_t stride() const { return teamThreads() * lanes; }
  /// Columns that the team takes at a time.
  int64_t step() const { return vectors * stride(); }
};

/// Of a program's buffers, in their order: bytes that their addresses are multiples of.
using Alignments = std::vector<int64_t>;

/// Expects a program that row::verify accepts, whose buffers begin at multiples of so many bytes
/// (empty: all of widestAccess). Where a program sums over rows (columnPartial), a task's rows are
/// row::rowsPerTask, since the number of partial sums is part of the graph.
RowSchedule scheduleRows(const row::Program &program, const GpuTarget &target,
                         const Alignments &alignments = {});

/// Number of tasks for `extent` rows (elements, where flat).
int64_t taskCount(const row::Program &program, const RowSchedule &schedule, int64_t extent);

} // namespace gradc::codegen::gpu

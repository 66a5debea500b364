// How a row program falls into loops over the columns: the one reading of a program that emitters,
// the reference evaluation and the aliasing rule share.
//
// For each row: stage 0, loop 0, stage 1, loop 1, …, the last stage. A stage computes row-level
// values and stores those that are outputs; a loop visits every column.
#pragma once

#include "ir/row/RowProgram.h"

namespace gradc::row {

/// One loop over the columns.
struct Loop {
  std::vector<NodeId> reductions; ///< accumulated here, known in the next stage
  std::vector<int32_t> effects;   ///< indices into the program's effects, in their order
  std::vector<bool> computes;     ///< column-level nodes evaluated for each column
  std::vector<bool> uses;         ///< row-level nodes and constants that the loop reads
};

struct Loops {
  std::vector<Loop> loops;
  std::vector<bool> columnLevel;
  std::vector<int> loopOf;
  std::vector<bool> live; ///< nodes that some effect depends on
  /// Indices of storeRow effects a stage; one more stage than loops.
  std::vector<std::vector<int32_t>> stageStores;
};

/// Whether a loop goes through such a buffer column by column, so that vectors of it are accessed.
inline bool isAlongColumns(BufferKind kind) {
  return kind == BufferKind::matrix || kind == BufferKind::column ||
         kind == BufferKind::columnPartial;
}

/// Expects a program that `verify` accepts.
Loops splitIntoLoops(const Program &program);

} // namespace gradc::row

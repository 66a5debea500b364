// How a matrix product is cut: into tasks, slices of the depth, and blocks of rows.
#pragma once

#include "codegen/cpu/Gemm.h"

namespace gradc::codegen {

struct GemmTiling {
  int64_t rows, columns;         ///< of C that a task owns, but for the last of its kind
  int64_t rowParts, columnParts; ///< tasks of one matrix
  int64_t depth;                 ///< of a slice, but for the last
  int64_t blockRows;             ///< rows of A that are packed at a time
};

/// A slice holds a bounded number of a panel's steps, each of so many `stepsTogether` of the depth.
GemmTiling gemmTiling(const GemmSpec &spec, int64_t stepsTogether = 1);

/// Whether a task holds its sums in f32 on the stack from slice to slice, because C is narrow:
/// rows * columns of them.
bool holdsSums(const GemmSpec &spec);

} // namespace gradc::codegen

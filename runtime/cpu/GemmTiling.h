// How a matrix product is cut into tasks. The cut depends on the shape alone and never divides the
// summed dimension, so every element of the result is computed by the same instructions in the same
// order whatever the number of threads.
#pragma once

#include <cstdint>

#include "runtime/Abi.h"

namespace gradc::rt {

/// A product in the one form that is executed: C has contiguous rows. When the caller's C has
/// contiguous columns the operands trade places (C' = B' A').
struct GemmProblem {
  int64_t m, n, k;
  int64_t batch[2];
  struct Operand {
    int64_t rowStride, columnStride; ///< one of them is 1
    int64_t batchStride[2];
    bool operator==(const Operand &) const = default;
  } a, b, c;
  bool accumulate;
  bool swapped; ///< whether a is the caller's b and the other way round
  bool operator==(const GemmProblem &) const = default;
};

GemmProblem normalise(const GradcGemm &gemm);

/// Slices of rows and columns; every slice but the last of its kind has the full size. Columns are
/// worked through panel by panel, each of `panelSlices` column slices (one panel unless the right
/// operand is packed and only a part of it fits the workspace).
struct GemmTiling {
  int64_t sliceRows, sliceColumns;
  int64_t rowSlices, columnSlices;
  int64_t panelSlices;
  int64_t batchPerTask, batchTasks;
};

GemmTiling tile(const GemmProblem &problem);

/// The cut when column slices of the right operand are packed into `workspaceBytes`; false where
/// the problem is not one to pack.
bool tilePacked(const GemmProblem &problem, int64_t workspaceBytes, GemmTiling &tiling);

} // namespace gradc::rt

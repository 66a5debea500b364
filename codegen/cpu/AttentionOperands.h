// The operands of one attention head: where they lie, and their copies in scratch, padded with
// zeros so that whole tiles can be computed everywhere.
#pragma once

#include "codegen/cpu/AttentionTiling.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// One (batch, head) of a buffer: rows are tokens.
struct HeadRows {
  mlir::Value base; ///< of token 0
  int64_t stride;   ///< elements from token to token
};
HeadRows headRows(KernelBuilder &k, mlir::Value buffer, const AttentionSpec::Strides &strides,
                  mlir::Value batch, mlir::Value head);

/// Rows `first` .. `first + rows` of a head; those from `end` on do not exist and become zeros.
struct RowRange {
  mlir::Value first, end, rows;
};

/// to[i][0 .. width) = factor * from[first + i], columns from headDim on being zeros. Returns an
/// i1: some element is infinite or NaN, so that a weight of 0 would not hide its row.
mlir::Value packRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                     const RowRange &range, double factor, mlir::Value to);

/// The transpose, in panels: to[rows / panel][depth][panel]. `rows` is a multiple of the panel.
void packTransposed(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                    const RowRange &range, mlir::Value to);

/// Zeros `floats` (a multiple of the vector's length) of scratch.
void zeroScratch(KernelBuilder &k, mlir::Value scratch, mlir::Value floats);

/// For each vector of a head's row, the last perhaps partial: stores `value(column, count)` at
/// `row` + column.
void storeHeadRow(KernelBuilder &k, const AttentionTiling &tiling, mlir::Value row,
                  llvm::function_ref<mlir::Value(int64_t column, int64_t count)> value);

} // namespace gradc::codegen

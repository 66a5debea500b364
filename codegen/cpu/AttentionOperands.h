// The operands of one attention head: where they lie, and their copies in scratch, f32 and padded
// with zeros so that whole tiles can be computed everywhere.
#pragma once

#include "codegen/cpu/AttentionTiling.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// One (batch, head) of a buffer, or a copy in scratch: rows are tokens.
struct HeadRows {
  mlir::Value base; ///< of token `first`
  int64_t stride;   ///< elements from token to token
  row::Dtype dtype;
  mlir::Value first; ///< null: token 0

  mlir::Value row(KernelBuilder &k, mlir::Value token) const;
  /// Address of the element at `column` of a row.
  mlir::Value at(KernelBuilder &k, mlir::Value row, mlir::Value column) const;
  /// The first `count` lanes of the vector at `address`, widened to f32.
  mlir::Value load(KernelBuilder &k, mlir::Value address, int64_t count) const;
};
HeadRows headRows(KernelBuilder &k, mlir::Value buffer, const AttentionSpec &spec,
                  const AttentionSpec::Strides &strides, mlir::Value batch, mlir::Value head);

/// Where sums for `rows` rows from token `first` on are gathered in f32: in the output itself, or
/// in scratch where its elements are narrow.
HeadRows gatheringRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &output,
                       mlir::Value first, int64_t rows);

/// Rows `first` .. `first + rows` of a head; those from `end` on do not exist and become zeros.
struct RowRange {
  mlir::Value first, end, rows;
};

/// to[i][0 .. width) = factor * from[first + i], columns from headDim on being zeros. Returns an
/// i1: some element is infinite or NaN, so that a weight of 0 would not hide its row.
mlir::Value packRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                     const RowRange &range, double factor, mlir::Value to);
/// The same, with zeros in place of what is not finite.
void packFiniteRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                    const RowRange &range, double factor, mlir::Value to);

/// The transpose, in panels: to[rows / panel][depth][panel]. `rows` is a multiple of the panel.
/// Returns an i1 as packRows does.
mlir::Value packTransposed(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                           const RowRange &range, mlir::Value to);

/// Zeros `floats` (a multiple of the vector's length) of scratch.
void zeroScratch(KernelBuilder &k, mlir::Value scratch, mlir::Value floats);

/// Calls body(column, count) for each vector of a token's row, the last perhaps partial.
void forHeadVectors(KernelBuilder &k, const AttentionTiling &tiling,
                    llvm::function_ref<void(int64_t column, int64_t count)> body);
/// Stores `value(column, address, count)`, rounded to the rows' dtype, as each vector of a token.
void storeHeadRow(
    KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &rows, mlir::Value token,
    llvm::function_ref<mlir::Value(int64_t column, mlir::Value address, int64_t count)> value);

} // namespace gradc::codegen

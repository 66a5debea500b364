// Register tiles of matrix products: C (+)= A B with every element of C in a register while the
// whole depth streams by. B's row of a step is loaded as vectors; A's elements are broadcast.
//
// The shapes that fill a register file: 6 rows of 4 vectors with 32 registers of 512 bits, 6 rows
// of 2 vectors with 16 registers. Narrow products take more rows instead, so that enough
// independent sums are in flight to hide the multiply-adds' latency.
#pragma once

#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// What the depth of a tile is usually a multiple of, operands being padded with zeros.
inline constexpr int64_t tileDepthUnit = 4;

/// A tile of `rows` x (`vectors` * lanes) elements. All strides in elements.
struct TileSpec {
  int64_t rows = 0;
  int64_t vectors = 0;
  bool aTransposed = false; ///< element (i, k) of A is a[k * aStride + i], else a[i * aStride + k]
  int64_t aStride = 0;
  int64_t bStride = 0;               ///< element (k, j) of B is b[k * bStride + j]
  int64_t cStride = 0;               ///< element (i, j) of C is c[i * cStride + j]
  bool accumulate = false;           ///< C += A B, else C = A B
  int64_t depthUnit = tileDepthUnit; ///< the depth is a multiple of this
  bool pairs = false; ///< elements of A and B are pairs of bf16 in 32 bits, two steps of the depth
};

/// Vectors of the widest tile.
int64_t maxTileVectors(const CpuTarget &target);
/// Rows of the best tile of so many vectors: 6, 8 or 12.
int64_t tileRows(const CpuTarget &target, int64_t vectors);

/// Columns split into tiles: `column` counts elements.
struct ColumnTile {
  int64_t column;
  int64_t vectors;
};
llvm::SmallVector<ColumnTile> columnTiles(const CpuTarget &target, int64_t columns);

/// The function (i64 depth, ptr a, ptr b, ptr c) of a tile in k's module, made where it is missing.
mlir::func::FuncOp tileFunction(KernelBuilder &k, const TileSpec &spec);

/// What a tile works on; c is null where only the sums are asked for.
struct TileOperands {
  mlir::Value depth, a, b, c;
};
/// One call of a tile function.
void callTile(KernelBuilder &k, const TileSpec &spec, const TileOperands &operands);

/// The loop over the depth alone, printed in place: A B as rows x vectors values. Where C goes is
/// up to the caller; the spec's cStride and accumulate are not looked at.
llvm::SmallVector<mlir::Value> emitTileSums(KernelBuilder &k, const TileSpec &spec,
                                            const TileOperands &operands);

} // namespace gradc::codegen

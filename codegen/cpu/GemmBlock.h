// The product of packed operands (GemmPack.h): register tiles over a block of C.
#pragma once

#include "codegen/cpu/GemmPack.h"
#include "codegen/cpu/Microkernel.h"

namespace gradc::codegen {

/// The one tile of a target's products: rows of A's panels and columns of B's.
TileSpec gemmTile(const CpuTarget &target);

/// Part of a matrix that is fetched towards the caches while a block is multiplied, because it is
/// packed next: so many lines of the matrix, each of `length` neighbouring elements.
struct FetchAhead {
  mlir::Value from;
  int64_t stride;
  mlir::Value lines, length;
};

struct GemmBlock {
  mlir::Value depth;         ///< padded
  mlir::Value rows, columns; ///< of C
  mlir::Value a, b;          ///< panels
  mlir::Value c;
  int64_t cStride;        ///< from one row to the next
  mlir::Value accumulate; ///< i1: C += A B, else C = A B
  FetchAhead nextA, nextB;
};

/// Prints a call of the function that multiplies such blocks.
void callGemmBlock(KernelBuilder &k, const GemmBlock &block);

} // namespace gradc::codegen

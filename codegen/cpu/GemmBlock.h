// The product of packed operands (GemmPack.h): register tiles over a block of C.
#pragma once

#include "codegen/cpu/GemmPack.h"
#include "codegen/cpu/Microkernel.h"

namespace gradc::codegen {

/// The one tile of a target's products: rows of A's panels and columns of B's.
TileSpec gemmTile(const CpuTarget &target);

/// Part of a matrix that is fetched towards the caches while a block is multiplied, because it is
/// packed next: so many lines of the matrix, each of `length` neighbouring bytes.
struct FetchAhead {
  mlir::Value from;
  int64_t stride; ///< bytes
  mlir::Value lines, length;
};

/// Where the sums of a narrow C are until the depth has been summed up: in f32, in whole tiles one
/// after another, in the order in which a block is multiplied.
struct HeldSums {
  mlir::Value tiles;  ///< rows * columns floats, both rounded up to whole tiles
  mlir::Value isLast; ///< i1: the sums are rounded to C, which is not touched before
};

struct GemmBlock {
  mlir::Value depth;         ///< padded
  mlir::Value rows, columns; ///< of C
  mlir::Value a, b;          ///< panels
  mlir::Value c;
  int64_t cStride; ///< elements from one row to the next
  row::Dtype cDtype;
  mlir::Value accumulate; ///< i1: A B is added to C, or to what is held, else to nothing
  HeldSums held;          ///< of a narrow C
  FetchAhead nextA, nextB;
};

/// Prints a call of the function that multiplies such blocks.
void callGemmBlock(KernelBuilder &k, const GemmBlock &block);

} // namespace gradc::codegen

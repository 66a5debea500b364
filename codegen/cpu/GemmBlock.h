// The product of packed operands (GemmPack.h): register tiles over a block of C. Between the tiles
// it packs what is multiplied next, whose lines it fetches some tiles before: operands then arrive
// from memory while the sums are made.
#pragma once

#include "codegen/cpu/GemmPack.h"
#include "codegen/cpu/Microkernel.h"

namespace gradc::codegen {

/// The one tile of a target's products: rows of A's panels and columns of B's.
TileSpec gemmTile(const CpuTarget &target);

/// Where the sums of a narrow C are until the depth has been summed up: in f32, in whole tiles one
/// after another, in the order in which a block is multiplied.
struct HeldSums {
  mlir::Value tiles;  ///< rows * columns floats, both rounded up to whole tiles
  mlir::Value isLast; ///< i1: the sums are rounded to C, which is not touched before
};

struct GemmBlock {
  mlir::Value rows, columns; ///< of C
  mlir::Value a;             ///< panels, packed before
  PackSource sourceB;        ///< of the columns; its depth is the block's
  mlir::Value b;             ///< panels
  mlir::Value panelStrideB;  ///< floats from one to the next
  mlir::Value packsB;        ///< i1: each of b's panels is packed before it is used, else it was
  mlir::Value c;
  int64_t cStride; ///< elements from one row to the next
  row::Dtype cDtype;
  mlir::Value accumulate; ///< i1: A B is added to C, or to what is held, else to nothing
  HeldSums held;          ///< of a narrow C
  PackSource nextSourceA; ///< of the block after this one; of no size behind the last
  mlir::Value nextA;      ///< where its panels go
};

/// Prints a call of the function that multiplies such blocks.
void callGemmBlock(KernelBuilder &k, const GemmBlock &block);

} // namespace gradc::codegen

// What a block of a product does between its tiles for the tiles that follow: fetches lines, and
// packs them once they have come.
#pragma once

#include "codegen/cpu/GemmPack.h"

namespace gradc::codegen {

/// A PackSource as the arguments of a function that serves every format.
struct PackArguments {
  mlir::Value function;     ///< the packing function
  mlir::Value from;         ///< address
  mlir::Value stride;       ///< elements
  mlir::Value elementBytes; ///< of the source
  mlir::Value depth, count; ///< as PackSource has them
  mlir::Value transposed;   ///< i1
  mlir::Value scale;        ///< f32

  static llvm::SmallVector<mlir::Type> types(KernelBuilder &k);
  static llvm::SmallVector<mlir::Value> values(KernelBuilder &k, const PackSource &source,
                                               int64_t width);
  static PackArguments of(KernelBuilder &k, int firstParameter);

  mlir::Value strideBytes(KernelBuilder &k) const { return k.mul(stride, elementBytes); }
  /// The source is so many lines, `strideBytes` apart, each of `lineBytes` neighbouring bytes.
  mlir::Value lines(KernelBuilder &k) const { return k.select(transposed, count, depth); }
  mlir::Value lineBytes(KernelBuilder &k) const {
    return k.mul(k.select(transposed, depth, count), elementBytes);
  }
  /// Packs `count` rows of the first `depth` steps of what is at `from`.
  void pack(KernelBuilder &k, mlir::Value depth, mlir::Value count, mlir::Value from,
            mlir::Value to, mlir::Value panelStride) const;
};

/// An address so many bytes behind another.
mlir::Value byteAt(KernelBuilder &k, mlir::Value base, mlir::Value bytes);

/// Lines of memory that are fetched in even portions, one a tile.
struct FetchedLines {
  mlir::Value from, stride, lines, length; ///< bytes, but for `lines`

  /// Fetches the lines of [low, high).
  void fetch(KernelBuilder &k, mlir::Value low, mlir::Value high) const;
};

/// The panels of A for the next block, packed item by item while this one is multiplied: an item
/// is a panel, or some steps of every panel, so that its lines are whole.
class NextPanels {
public:
  /// Panels of `width`, in pairs or not.
  NextPanels(KernelBuilder &k, const PackArguments &source, mlir::Value to, int64_t width,
             bool pairs, mlir::Value tiles);

  /// What a loop over the tiles carries: the position, and the items that are packed.
  llvm::SmallVector<mlir::Value> start() { return {k.index(0), k.index(0)}; }
  /// Does what is due with one tile.
  llvm::SmallVector<mlir::Value> advance(llvm::ArrayRef<mlir::Value> carried);
  /// Packs the rest.
  void finish(llvm::ArrayRef<mlir::Value> carried) { packItems(carried[1], items); }

private:
  void packItems(mlir::Value low, mlir::Value high);

  KernelBuilder &k;
  PackArguments source;
  FetchedLines lines;
  mlir::Value to, items, itemLines, itemStride, stride;
  mlir::Value pace; ///< items a tile, in units of 1 / paceUnit
};

} // namespace gradc::codegen

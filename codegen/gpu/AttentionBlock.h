// What attention's blocks have in common, forward and backward: where their operands lie, and the
// pipeline that brings the other side's tiles while one is computed with.
#pragma once

#include "codegen/gpu/AttentionDropout.h"
#include "codegen/gpu/AttentionMask.h"
#include "codegen/gpu/Products.h"

namespace gradc::codegen::gpu {

class AttentionBlock {
public:
  /// `maskBuffers` are the kernel's behind the tensors that it reads (codegen/cpu/Attention.h).
  AttentionBlock(BlockPrinter &printer, const AttentionSpec &spec,
                 const AttentionSchedule &schedule, Val sharedMemory,
                 llvm::ArrayRef<mlir::Value> maskBuffers);

  static constexpr double log2e = 1.4426950408889634, ln2 = 0.6931471805599453;

  Emit e;
  Place place;
  AttentionMask mask;
  AttentionDropout dropout;
  TileLayout layout;
  TileCopy copy;
  Val memory;
  Val warpRow; ///< of the block's rows, the warp's first

  /// Columns of a result that a warp has.
  int64_t ownColumns() const { return layout.columns / schedule.parts; }
  /// Whether the warp has a result's first columns, for what a row has once.
  Val hasFirstPart() { return e.less(place.warp, schedule.warps); }

  /// One head of a buffer.
  HeadMatrix matrix(Val buffer, const AttentionSpec::Strides &strides, Val batch, Val head);
  /// f32 of one head of [batch, heads, seq].
  Val rowsOfHead(Val buffer, Val batch, Val head);

  /// Scores as products have them become those whose greatest has the greatest weight.
  void orient(Bands &scores);
  /// What oriented scores are multiplied by: above 0.
  double scale() const { return spec.scale > 0 ? spec.scale : 1; }
  /// Weights that dropout does not keep become 0. `bits` by band, of fragments from `first` on.
  void drop(Bands &weights, llvm::ArrayRef<Val> bits, int64_t first);

  SharedTile tile(Val bytes) { return {e, place, layout, e.at(memory, bytes)}; }
  SharedTile tile(int64_t bytes) { return {e, place, layout, e.at(memory, bytes)}; }

  /// Passes over `count` tiles: `fetch(i, bytes)` starts copying what belongs to tile i to a stage
  /// of shared memory, `compute(i, bytes)` finds it there and assigns `carried`. Copies that were
  /// started before are waited for as well.
  void pipeline(Val count, int64_t stageBytes, const Variables &carried,
                llvm::function_ref<void(Val i, Val bytes)> fetch,
                llvm::function_ref<void(Val i, Val bytes)> compute);

  /// Runs `body(careful)`, which assigns `results` and `others`: first not carefully and, where a
  /// result of a row below the sequence's end (the warp's first is `row`) is then not finite,
  /// carefully.
  void attempt(llvm::ArrayRef<Bands *> results, Val row, const Variables &others,
               llvm::function_ref<void(bool careful)> body);

  /// rowsum(x * y) of a row of two matrices, for the four threads of a quad together.
  Val rowProduct(const HeadMatrix &x, const HeadMatrix &y, Val row);

  /// The warp's columns of a tile.
  SharedTile ownPart(const SharedTile &whole);

private:
  Val rowOfWarp() const;
  Val notFinite(const Bands &results, Val row);

  const AttentionSpec &spec;
  AttentionSchedule schedule;
};

} // namespace gradc::codegen::gpu

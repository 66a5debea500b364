// Attention, backward: what the parts of its emitter share. Five products a pair of blocks: the
// scores again, dP = dO V^T, and from P = exp(scores - lse) and dS = P (dP - rowsum(dO O)) the sums
// dV += P^T dO, dK += dS^T Q and dQ += dS K. Key blocks are outside, so that dK and dV of a block
// stay in the first cache; query rows come in superblocks whose packed Q, dO and dQ fit the second.
// A task owns whatever it adds to: nothing is added up across tasks.
//
// Infinities and NaN. P and dS are set to 0 where a key is not seen, but 0 times NaN is not 0: so
// the operands that they are multiplied by, Q, dO and K, are packed with zeros in place of what is
// not finite. Nothing is lost: such a row of Q or K has scores, such a row of dO has sums, that
// make P or dS infinite, NaN, or (a score of -inf) 0 as they must be.
#pragma once

#include "codegen/cpu/AttentionDocuments.h"
#include "codegen/cpu/AttentionDropout.h"
#include "codegen/cpu/AttentionOperands.h"

namespace gradc::codegen {

class BackwardEmitter {
public:
  BackwardEmitter(KernelBuilder &k, const AttentionSpec &spec);
  void emit();

private:
  /// The part of the work that one task does, for one key head of one sequence.
  struct Share {
    mlir::Value batch, kvHead;
    mlir::Value firstHead, endHead; ///< query heads
    mlir::Value firstKey, endKey;
    mlir::Value firstQuery, endQuery;
    bool keyGradients, queryGradients;
  };
  /// Queries are relative to the superblock, which begins at token `superFirst`.
  struct Blocks {
    mlir::Value firstKey, superFirst, firstQuery;
    mlir::Value live, queries; ///< rows that exist and see a key, and the same in whole units
  };
  /// Keys low .. high of the block that a query sees; none where low >= high.
  struct Visible {
    mlir::Value low, high;
  };

  // --- AttentionBackward.cpp: tasks and blocks
  void allocate();
  void wholeHead();
  void keyShare();
  void queryShare(mlir::Value number);
  void share(const Share &share);
  void queryHead(const Share &share, mlir::Value head);
  void superblock(const Share &share, mlir::Value first);
  void keyBlock(const Share &share, mlir::Value firstKey, mlir::Value superFirst,
                mlir::Value superQueries);

  // --- AttentionBackwardScores.cpp: P and dS
  void rowConstants(mlir::Value first, mlir::Value count);
  void scores(const Blocks &blocks);
  void scoreGradients(const Blocks &blocks);
  mlir::Value needsMask(const Blocks &blocks);
  void scoreGradientRow(const Blocks &blocks, mlir::Value i, bool masked);
  Visible visibleKeys(const Blocks &blocks, mlir::Value i);
  mlir::Value seenLanes(const Visible &visible, int64_t column);

  // --- AttentionBackwardSums.cpp: dV, dK and dQ
  void keyProducts(const Blocks &blocks);
  void keyTiles(const Blocks &blocks, const TileSpec &tile, int64_t column, int64_t low,
                int64_t high);
  void queryProduct(const Blocks &blocks);
  void queryTile(const Blocks &blocks, const TileSpec &tile, int64_t column, mlir::Value i);
  void zeroRows(const HeadRows &rows, mlir::Value first, mlir::Value end);
  void addKeyGradients(mlir::Value firstKey, mlir::Value end);
  void storeKeyGradients(mlir::Value first, mlir::Value end);
  void storeQueryGradients(mlir::Value first, mlir::Value count);

  /// Query blocks start and end at multiples of this: whole tiles, whole units of depth.
  int64_t rowUnit() const;
  mlir::Value packedRow(mlir::Value operand, mlir::Value i) {
    return k.at(operand, k.mul(i, tiling.width));
  }
  mlir::Value tileRow(mlir::Value tile, mlir::Value i) {
    return k.at(tile, k.mul(i, backwardKeyBlock));
  }

  KernelBuilder &k;
  const AttentionSpec &spec;
  AttentionTiling tiling;
  BackwardSplit split;
  struct {
    int64_t rows, vectors;
  } scoreTile;
  int64_t superRows = 0;
  AttentionDocuments documents;
  AttentionDropout dropout;

  HeadRows q, keys, values, out, dOut, dq, dk, dv;
  HeadRows gatheredDk, gatheredDv;
  mlir::Value lse; ///< of this query head
  // Superblock: [superRows][width], and [superRows] each.
  mlir::Value packedQ, packedDOut, sumsDq, rowLse, rowDelta;
  // Key block: transposed panels, [64][width] each.
  mlir::Value keysT, valuesT, packedKeys, sumsDk, sumsDv;
  mlir::Value keysNotFinite; ///< i1: of the key block's keys or values
  mlir::Value p, dS;         ///< [backwardQueryBlock][64]; first hold the scores and dP
};

} // namespace gradc::codegen

// Attention, forward: what the parts of its emitter share. A task owns a range of query rows of one
// head. Key blocks are the outer loop: a block's keys are packed transposed and its values padded,
// small enough to stay in the second cache, and every query block that sees them passes by. What is
// carried from key block to key block is the output row, not yet divided by its sum, and each row's
// maximum and sum.
#pragma once

#include "codegen/cpu/AttentionDocuments.h"
#include "codegen/cpu/AttentionDropout.h"
#include "codegen/cpu/AttentionOperands.h"

#include <limits>

namespace gradc::codegen {

class ForwardEmitter {
public:
  ForwardEmitter(KernelBuilder &k, const AttentionSpec &spec);
  void emit();

private:
  /// What a maximum starts from: finite, so that a row which sees no key in a block (all of its
  /// scores there are -inf) gets weights of 0.
  static constexpr double lowestMaximum = std::numeric_limits<float>::lowest();

  /// A block of keys and a block of queries, in token numbers. `keys`, `lowKey` and `highKey` are
  /// relative to firstKey, the latter two bounding the panels that some query of the block sees.
  struct Blocks {
    mlir::Value firstKey, keys;
    mlir::Value firstQuery, queries;
    mlir::Value lowKey, highKey;
    /// Where queries forget: the first key that some query of the block sees, in any key block, but
    /// no later than the last that the causal mask leaves: that one's block closes the rows.
    mlir::Value oldestKey;
    mlir::Value latestStart; ///< with documents: the greatest first key
  };

  // --- AttentionForward.cpp: tasks, blocks, scores
  void openTask();
  void allocate();
  void keyBlock(mlir::Value firstKey);
  mlir::Value endOfKeys(const Blocks &blocks);
  void limitKeys(Blocks &blocks, mlir::Value packedKeyRows);
  void queryBlock(const Blocks &blocks);
  void scores(const Blocks &blocks);

  // --- AttentionForwardSoftmax.cpp: scores become weights
  void softmax(const Blocks &blocks);
  void mask(const Blocks &blocks);
  void maskRow(const Blocks &blocks, mlir::Value i);
  void rowMaxima(const Blocks &blocks);
  void carryMaxima(const Blocks &blocks);
  void weights(const Blocks &blocks);
  void dropWeights(const Blocks &blocks, mlir::Value i);

  // --- AttentionForwardOutput.cpp: weights times values
  void weighValues(const Blocks &blocks);
  std::pair<mlir::Value, mlir::Value> seenKeys(const Blocks &blocks, mlir::Value i,
                                               const TileSpec &tile);
  void carryOutput(const Blocks &blocks);
  void closeRows(const Blocks &blocks);

  /// Keys low .. high of the block that query i sees; none where low >= high.
  struct Visible {
    mlir::Value low, high;
  };
  Visible visibleKeys(const Blocks &blocks, mlir::Value i);

  mlir::Value scoreRow(mlir::Value i) { return k.at(scoreTile, k.mul(i, scoreStride())); }
  /// Not a power of two: rows of a tile must not compete for the same lines of the first cache.
  int64_t scoreStride() const { return blockKeys + 16; }
  mlir::Value carriedAt(mlir::Value array, const Blocks &blocks) {
    return k.at(array, k.sub(blocks.firstQuery, taskFirst));
  }

  KernelBuilder &k;
  const AttentionSpec &spec;
  AttentionTiling tiling;
  ForwardSplit split;
  int64_t blockKeys; ///< keys of a block at most
  AttentionDocuments documents;
  AttentionDropout dropout;

  HeadRows q, keys, values, out;
  HeadRows sumsOut;               ///< the output rows, not yet divided
  mlir::Value lse;                ///< of this head
  mlir::Value taskFirst, taskEnd; ///< query rows
  mlir::Value maxima, sums;       ///< of the task's rows, maxima in base 2
  mlir::Value packedKeys, packedValues, packedQueries;
  mlir::Value valuesNotFinite;       ///< i1, of the key block
  mlir::Value scoreTile, outputTile; ///< [query block][scoreStride], [query block][width]
  mlir::Value blockMaxima, corrections, inverses; ///< [query block]
};

} // namespace gradc::codegen

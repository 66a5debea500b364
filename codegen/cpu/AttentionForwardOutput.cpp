// Attention, forward: the output rows, sums of values by weight.
#include "codegen/cpu/AttentionForwardEmitter.h"
#include "codegen/kernels/VectorMath.h"

#include <numbers>

using namespace mlir;
namespace gradc::codegen {

/// outputTile = weights values, each row tile over the keys that some of its rows see. Where a
/// value is infinite or NaN, each row over the keys that it sees itself: 0 times NaN is not 0.
void ForwardEmitter::weighValues(const Blocks &blocks) {
  auto product = [&](bool exact) {
    for (ColumnTile columns : columnTiles(k.target(), tiling.width)) {
      TileSpec tile{tileRows(k.target(), columns.vectors),
                    columns.vectors,
                    false,
                    scoreStride(),
                    tiling.width,
                    tiling.width,
                    false};
      if (exact)
        tile.rows = tile.depthUnit = 1;
      k.forRange(0, blocks.queries, tile.rows, [&](Value i) {
        auto [low, high] = seenKeys(blocks, i, tile);
        Value value = k.at(packedValues, k.mul(low, tiling.width));
        callTile(k, tile,
                 {k.sub(high, low), k.at(scoreRow(i), low), k.at(value, columns.column),
                  k.at(k.at(outputTile, k.mul(i, tiling.width)), columns.column)});
      });
    }
  };
  if (!spec.masked() && !documents)
    return product(false);
  k.ifTrue(valuesNotFinite, [&] { product(true); }, [&] { product(false); });
}

/// Keys that some row of a tile sees, to whole units of depth.
std::pair<Value, Value> ForwardEmitter::seenKeys(const Blocks &blocks, Value i,
                                                 const TileSpec &tile) {
  Value low = blocks.lowKey, high = blocks.highKey;
  Value position = k.sub(k.add(blocks.firstQuery, i), blocks.firstKey);
  if (spec.masked()) {
    Value last = k.maximum(k.add(position, tile.rows), 0);
    high = k.minimum(high, k.roundUp(last, tile.depthUnit));
  }
  if (spec.window > 0) {
    Value first = k.maximum(k.sub(position, spec.window - 1), 0);
    low = k.maximum(low, k.roundDown(first, tile.depthUnit));
  }
  if (documents) {
    Value first = documents.leastOf(k.add(blocks.firstQuery, i), tile.rows);
    first = k.maximum(k.sub(first, blocks.firstKey), 0);
    low = k.minimum(k.maximum(low, k.roundDown(first, tile.depthUnit)), high);
  }
  return {low, high};
}

void ForwardEmitter::carryOutput(const Blocks &blocks) {
  Value firstBlock = k.index(0);
  if (spec.forgets())
    firstBlock = k.roundDown(blocks.oldestKey, blockKeys);
  auto rows = [&](llvm::function_ref<Value(Value i, Value carried, Value fresh)> sum) {
    k.forRange(0, blocks.queries, 1, [&](Value i) {
      Value fresh = k.at(outputTile, k.mul(i, tiling.width));
      storeHeadRow(k, tiling, sumsOut, k.add(blocks.firstQuery, i),
                   [&](int64_t column, Value address, int64_t count) {
                     return sum(i, sumsOut.load(k, address, count), k.load(k.at(fresh, column)));
                   });
    });
  };
  k.ifTrue(
      k.less(firstBlock, blocks.firstKey),
      [&] {
        rows([&](Value i, Value carried, Value fresh) {
          Value correction = k.v.splat(k.loadFloat(k.at(corrections, i)));
          return k.v.fma(correction, carried, fresh);
        });
      },
      [&] { rows([&](Value, Value, Value fresh) { return fresh; }); });
}

/// After a row's last key: divides it by its sum, and writes the logarithm of that. A row that saw
/// no key becomes 0 even where its values are not finite.
void ForwardEmitter::closeRows(const Blocks &blocks) {
  Value carriedMaxima = carriedAt(maxima, blocks), carriedSums = carriedAt(sums, blocks);
  k.forRange(0, blocks.queries, k.lanes(), [&](Value i) {
    Value sum = k.load(k.at(carriedSums, i));
    Value empty = k.equalF(sum, k.reals(0));
    Value inverse = k.select(empty, k.reals(0), k.v.div(k.reals(1), sum));
    k.store(inverse, k.at(inverses, i));
    Value maximum = k.v.mul(k.load(k.at(carriedMaxima, i)), k.reals(std::numbers::ln2));
    k.store(k.v.add(maximum, emitLog(k.v, sum)), k.at(blockMaxima, i));
  });
  k.forRange(0, blocks.queries, 1, [&](Value i) {
    Value query = k.add(blocks.firstQuery, i);
    k.store(k.loadFloat(k.at(blockMaxima, i)), k.at(lse, query));
    Value inverse = k.loadFloat(k.at(inverses, i));
    Value empty = k.equalF(inverse, k.v.constant(k.v.f32, 0));
    Value sums = sumsOut.row(k, query);
    storeHeadRow(k, tiling, out, query, [&](int64_t column, Value, int64_t count) {
      Value sum = sumsOut.load(k, sumsOut.at(k, sums, k.index(column)), count);
      return k.select(empty, k.reals(0), k.v.mul(sum, k.v.splat(inverse)));
    });
  });
}

} // namespace gradc::codegen

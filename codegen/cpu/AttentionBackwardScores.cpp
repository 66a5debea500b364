// Attention, backward: the weights P and their gradients' inner part dS, a block at a time.
#include "codegen/cpu/AttentionBackwardEmitter.h"

#include <limits>
#include <numbers>

using namespace mlir;
namespace gradc::codegen {

static constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of each row: lse in base 2, and rowsum(dO O). Rows that see no key get an lse of +inf, which
/// makes all of their weights zero; rows of dO that are not finite get NaN, as packedDOut has zeros
/// there.
void BackwardEmitter::rowConstants(Value first, Value count) {
  auto number = [&](double value) { return k.v.constant(k.v.f32, value); };
  k.forRange(0, count, 1, [&](Value i) {
    Value token = k.add(first, i), outRow = out.row(k, token), gradientRow = dOut.row(k, token);
    Value sum = k.reals(0), probe = k.reals(0);
    forHeadVectors(k, tiling, [&](int64_t column, int64_t lanes) {
      Value x = out.load(k, out.at(k, outRow, k.index(column)), lanes);
      Value gradient = dOut.load(k, dOut.at(k, gradientRow, k.index(column)), lanes);
      sum = k.v.fma(x, gradient, sum);
      probe = k.v.fma(gradient, k.reals(0), probe);
    });
    Value log = k.loadFloat(k.at(lse, token));
    Value empty = k.equalF(log, number(-infinity));
    Value base2 = k.v.fma(log, number(std::numbers::log2e), k.sumLanes(probe));
    k.store(k.select(empty, number(infinity), base2), k.at(rowLse, i));
    k.store(k.select(empty, number(0), k.sumLanes(sum)), k.at(rowDelta, i));
  });
}

/// p = Q K^T and dS = dO V^T.
void BackwardEmitter::scores(const Blocks &blocks) {
  TileSpec tile{scoreTile.rows, scoreTile.vectors, false, tiling.width,
                tiling.panel,   backwardKeyBlock,  false};
  auto product = [&](Value rows, Value panels, Value to) {
    k.forRange(0, backwardKeyBlock, tiling.panel, [&](Value key) {
      k.forRange(0, blocks.queries, tile.rows, [&](Value i) {
        callTile(k, tile,
                 {k.index(tiling.depth), packedRow(rows, k.add(blocks.firstQuery, i)),
                  k.at(panels, k.mul(key, tiling.depth)), k.at(tileRow(to, i), key)});
      });
    });
  };
  product(packedQ, keysT, p);
  product(packedDOut, valuesT, dS);
}

void BackwardEmitter::scoreGradients(const Blocks &blocks) {
  auto rows = [&](bool masked) {
    k.forRange(0, blocks.live, 1, [&](Value i) { scoreGradientRow(blocks, i, masked); });
  };
  k.ifTrue(needsMask(blocks), [&] { rows(true); }, [&] { rows(false); });
  Value padding = k.mul(k.sub(blocks.queries, blocks.live), backwardKeyBlock);
  zeroScratch(k, tileRow(p, blocks.live), padding);
  zeroScratch(k, tileRow(dS, blocks.live), padding);
}

/// Some row of the block does not see some key: none exists there, the mask hides it, or the row
/// sees no key at all, which shows only where a key or a value is not finite.
Value BackwardEmitter::needsMask(const Blocks &blocks) {
  Value beyond = k.add(blocks.firstKey, backwardKeyBlock);
  Value first = k.add(blocks.superFirst, blocks.firstQuery);
  Value needed = k.either(keysNotFinite, k.less(k.index(spec.seq), beyond));
  if (spec.masked())
    needed = k.either(needed, k.less(k.add(first, 1), beyond));
  if (spec.window > 0) {
    Value last = k.add(first, k.sub(blocks.live, 1));
    needed = k.either(needed, k.less(k.add(blocks.firstKey, spec.window - 1), last));
  }
  if (documents) {
    Value latest = documents.bounds(first, k.add(first, blocks.live)).greatest;
    needed = k.either(needed, k.less(blocks.firstKey, latest));
  }
  return needed;
}

/// With dropout's factors M: p = P M and dS = P (dP M - rowsum(dO O)).
void BackwardEmitter::scoreGradientRow(const Blocks &blocks, Value i, bool masked) {
  Value row = k.add(blocks.firstQuery, i);
  Value log = k.v.splat(k.loadFloat(k.at(rowLse, row)));
  Value delta = k.v.splat(k.loadFloat(k.at(rowDelta, row)));
  Visible visible =
      masked ? visibleKeys(blocks, row) : Visible{k.index(0), k.index(backwardKeyBlock)};
  Value factors;
  if (dropout)
    factors =
        dropout.factors(k.add(blocks.superFirst, row), blocks.firstKey, visible.low, visible.high);
  for (int64_t column = 0; column < backwardKeyBlock; column += k.lanes()) {
    Value pPlace = k.at(tileRow(p, i), column), dPlace = k.at(tileRow(dS, i), column);
    Value weight = k.exp2(k.v.sub(k.load(pPlace), log)), weightGradient = k.load(dPlace);
    Value dropped = weight;
    if (dropout) {
      Value factor = k.load(k.at(factors, column));
      dropped = k.v.mul(weight, factor);
      weightGradient = k.v.mul(weightGradient, factor);
    }
    Value gradient = k.v.mul(weight, k.v.sub(weightGradient, delta));
    if (masked) {
      Value seen = seenLanes(visible, column);
      dropped = k.select(seen, dropped, k.reals(0));
      gradient = k.select(seen, gradient, k.reals(0));
    }
    k.store(dropped, pPlace);
    k.store(gradient, dPlace);
  }
}

/// Of a row of the superblock.
BackwardEmitter::Visible BackwardEmitter::visibleKeys(const Blocks &blocks, Value row) {
  Value position = k.sub(k.add(blocks.superFirst, row), blocks.firstKey);
  Value low = k.index(0);
  Value high = k.minimum(k.sub(k.index(spec.seq), blocks.firstKey), backwardKeyBlock);
  if (spec.masked())
    high = k.minimum(high, k.add(position, 1));
  if (spec.window > 0)
    low = k.maximum(k.sub(position, spec.window - 1), 0);
  if (documents) {
    Value first = documents.firstKey(k.add(blocks.superFirst, row));
    low = k.maximum(low, k.sub(first, blocks.firstKey));
  }
  Value empty = k.equalF(k.loadFloat(k.at(rowLse, row)), k.v.constant(k.v.f32, infinity));
  return {low, k.select(empty, k.index(0), high)};
}

/// Mask of the visible keys from `column` on.
Value BackwardEmitter::seenLanes(const Visible &visible, int64_t column) {
  Value seen = k.v.firstLanes(k.sub(visible.high, k.index(column)));
  if (!spec.forgets())
    return seen;
  Value hidden = k.v.firstLanes(k.sub(visible.low, k.index(column)));
  return k.select(hidden, k.v.constant(hidden.getType(), 0), seen);
}

} // namespace gradc::codegen

// Attention, forward: scores become weights, row by row.
#include "codegen/cpu/AttentionForwardEmitter.h"

#include <limits>

using namespace mlir;
namespace gradc::codegen {

void ForwardEmitter::softmax(const Blocks &blocks) {
  mask(blocks);
  rowMaxima(blocks);
  carryMaxima(blocks);
  weights(blocks);
}

void ForwardEmitter::mask(const Blocks &blocks) {
  Value needed = k.less(blocks.keys, blocks.highKey);
  if (spec.masked()) {
    Value reach = k.add(k.sub(blocks.firstQuery, blocks.firstKey), 1);
    needed = k.either(needed, k.less(reach, blocks.highKey));
  }
  if (spec.window > 0) {
    Value last = k.add(blocks.firstQuery, k.sub(blocks.queries, 1));
    Value first = k.sub(k.sub(last, spec.window - 1), blocks.firstKey);
    needed = k.either(needed, k.less(blocks.lowKey, first));
  }
  if (documents)
    needed = k.either(needed, k.less(k.add(blocks.firstKey, blocks.lowKey), blocks.latestStart));
  k.ifTrue(needed, [&] { k.forRange(0, blocks.queries, 1, [&](Value i) { maskRow(blocks, i); }); });
}

ForwardEmitter::Visible ForwardEmitter::visibleKeys(const Blocks &blocks, Value i) {
  Value position = k.sub(k.add(blocks.firstQuery, i), blocks.firstKey);
  Visible visible{blocks.lowKey, blocks.keys};
  if (spec.masked())
    visible.high = k.maximum(k.minimum(visible.high, k.add(position, 1)), 0);
  if (spec.window > 0)
    visible.low = k.maximum(visible.low, k.sub(position, spec.window - 1));
  if (documents) {
    Value first = documents.firstKey(k.add(blocks.firstQuery, i));
    visible.low = k.maximum(visible.low, k.sub(first, blocks.firstKey));
  }
  return visible;
}

/// Keys that are not visible become -inf; only the vectors at the ends are touched.
void ForwardEmitter::maskRow(const Blocks &blocks, Value i) {
  Value row = scoreRow(i);
  Value masked = k.reals(-std::numeric_limits<double>::infinity());
  auto [low, high] = visibleKeys(blocks, i);
  Value from = k.maximum(k.roundDown(high, k.lanes()), blocks.lowKey);
  k.forRange(from, blocks.highKey, k.lanes(), [&, high = high](Value j) {
    Value place = k.at(row, j);
    k.store(k.select(k.v.firstLanes(k.sub(high, j)), k.load(place), masked), place);
  });
  if (!spec.forgets())
    return;
  k.forRange(blocks.lowKey, k.minimum(low, blocks.highKey), k.lanes(), [&, low = low](Value j) {
    Value place = k.at(row, j);
    k.store(k.select(k.v.firstLanes(k.sub(low, j)), masked, k.load(place)), place);
  });
}

void ForwardEmitter::rowMaxima(const Blocks &blocks) {
  int64_t vectors = tiling.panel / k.lanes();
  k.forRange(0, blocks.queries, 1, [&](Value i) {
    Value row = scoreRow(i);
    SmallVector<Value> start(vectors, k.reals(lowestMaximum));
    auto found = k.forRange(
        blocks.lowKey, blocks.highKey, tiling.panel, start, [&](Value j, ArrayRef<Value> best) {
          SmallVector<Value> next;
          for (int64_t u = 0; u < vectors; ++u)
            next.push_back(k.greater(k.load(k.at(k.at(row, j), u * k.lanes())), best[u]));
          return next;
        });
    Value best = found[0];
    for (Value other : ArrayRef(found).drop_front())
      best = k.greater(best, other);
    k.store(k.maxLanes(best), k.at(blockMaxima, i));
  });
}

/// What is carried so far was relative to the old maximum.
void ForwardEmitter::carryMaxima(const Blocks &blocks) {
  Value carried = carriedAt(maxima, blocks);
  k.forRange(0, blocks.queries, k.lanes(), [&](Value i) {
    Value before = k.load(k.at(carried, i));
    Value now = k.greater(k.load(k.at(blockMaxima, i)), before);
    k.store(now, k.at(carried, i));
    k.store(k.exp2(k.v.sub(before, now)), k.at(corrections, i));
  });
}

/// scores become weights, relative to the row's maximum so far; their sums, which dropout leaves as
/// they are, are carried.
void ForwardEmitter::weights(const Blocks &blocks) {
  int64_t vectors = tiling.panel / k.lanes();
  Value carriedMaxima = carriedAt(maxima, blocks), carriedSums = carriedAt(sums, blocks);
  k.forRange(0, blocks.queries, 1, [&](Value i) {
    Value row = scoreRow(i), maximum = k.v.splat(k.loadFloat(k.at(carriedMaxima, i)));
    SmallVector<Value> start(vectors, k.reals(0));
    auto totals = k.forRange(blocks.lowKey, blocks.highKey, tiling.panel, start,
                             [&](Value j, ArrayRef<Value> sum) {
                               SmallVector<Value> next;
                               for (int64_t u = 0; u < vectors; ++u) {
                                 Value place = k.at(k.at(row, j), u * k.lanes());
                                 Value weight = k.exp2(k.v.sub(k.load(place), maximum));
                                 k.store(weight, place);
                                 next.push_back(k.v.add(sum[u], weight));
                               }
                               return next;
                             });
    Value total = totals[0];
    for (Value other : ArrayRef(totals).drop_front())
      total = k.v.add(total, other);
    Value place = k.at(carriedSums, i);
    Value before = k.v.mul(k.loadFloat(place), k.loadFloat(k.at(corrections, i)));
    k.store(k.v.add(before, k.sumLanes(total)), place);
    if (dropout)
      dropWeights(blocks, i);
  });
}

/// The weights of row i that are not zero by the mask, as dropout leaves them.
void ForwardEmitter::dropWeights(const Blocks &blocks, Value i) {
  auto [low, high] = visibleKeys(blocks, i);
  Value factors =
      dropout.factors(k.add(blocks.firstQuery, i), k.add(blocks.firstKey, blocks.lowKey),
                      k.sub(low, blocks.lowKey), k.sub(high, blocks.lowKey));
  Value row = scoreRow(i);
  k.forRange(k.roundDown(low, k.lanes()), high, k.lanes(), [&](Value j) {
    Value place = k.at(row, j), factor = k.load(k.at(factors, k.sub(j, blocks.lowKey)));
    k.store(k.v.mul(k.load(place), factor), place);
  });
}

} // namespace gradc::codegen

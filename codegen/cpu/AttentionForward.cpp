// Attention, forward. A task owns a range of query rows of one head. Key blocks are the outer loop:
// a block's keys are packed transposed and its values padded, small enough to stay in the second
// cache, and every query block that sees them passes by. What is carried from key block to key
// block is the output row, not yet divided by its sum, and each row's maximum and sum.
#include "codegen/cpu/AttentionOperands.h"
#include "codegen/cpu/VectorMath.h"

#include <limits>
#include <numbers>

using namespace mlir;
namespace gradc::codegen {

namespace {

/// What a maximum starts from: finite, so that a row which sees no key in a block (all of its
/// scores there are -inf) gets weights of 0.
constexpr double lowestMaximum = std::numeric_limits<float>::lowest();

class ForwardEmitter {
public:
  ForwardEmitter(KernelBuilder &k, const AttentionSpec &spec)
      : k(k), spec(spec), tiling(spec, k.target()), split(forwardSplit(spec)) {}
  void emit();

private:
  /// A block of keys and a block of queries, in token numbers; `keys`, `lowKey` and `highKey` are
  /// relative to firstKey, the latter two bounding the panels that some query of the block sees.
  struct Blocks {
    Value firstKey, keys;
    Value firstQuery, queries;
    Value lowKey, highKey;
  };

  void openTask();
  void allocate();
  void keyBlock(Value firstKey);
  void queryBlock(Blocks blocks);
  void scores(const Blocks &blocks);
  void mask(const Blocks &blocks);
  void maskRow(const Blocks &blocks, Value i);
  void rowMaxima(const Blocks &blocks);
  void weights(const Blocks &blocks);
  void weighValues(const Blocks &blocks);
  std::pair<Value, Value> seenKeys(const Blocks &blocks, Value i, const TileSpec &tile);
  void carryOutput(const Blocks &blocks);
  void closeRows(const Blocks &blocks);

  Value scoreRow(Value i) { return k.at(scoreTile, k.mul(i, scoreStride())); }
  /// Not a power of two: rows of a tile must not compete for the same lines of the first cache.
  int64_t scoreStride() const { return blockKeys + 16; }
  Value carriedAt(Value array, const Blocks &blocks) {
    return k.at(array, k.sub(blocks.firstQuery, taskFirst));
  }

  KernelBuilder &k;
  const AttentionSpec &spec;
  AttentionTiling tiling;
  ForwardSplit split;
  int64_t blockKeys = 0;

  HeadRows q, keys, values, out;
  Value lse;                ///< of this head
  Value taskFirst, taskEnd; ///< query rows
  Value maxima, sums;       ///< of the task's rows, maxima in base 2
  Value packedKeys, packedValues, packedQueries;
  Value valuesNotFinite;                    ///< i1, of the key block
  Value scoreTile, outputTile;              ///< [query block][scoreStride], [query block][width]
  Value blockMaxima, corrections, inverses; ///< [query block]
};

void ForwardEmitter::openTask() {
  Value head = k.divide(k.task(), split.parts), part = k.remainder(k.task(), split.parts);
  // Later rows of a causal head see more keys: the larger tasks go first.
  part = k.sub(k.index(split.parts - 1), part);
  Value batch = k.divide(head, spec.heads), h = k.remainder(head, spec.heads);
  Value kvHead = k.divide(h, spec.group());
  q = headRows(k, k.buffer(0), spec.q, batch, h);
  keys = headRows(k, k.buffer(1), spec.k, batch, kvHead);
  values = headRows(k, k.buffer(2), spec.v, batch, kvHead);
  out = headRows(k, k.buffer(3), spec.o, batch, h);
  lse = k.at(k.buffer(4), k.mul(head, spec.seq));
  taskFirst = k.mul(part, split.rows);
  taskEnd = k.minimum(k.add(taskFirst, split.rows), spec.seq);
}

void ForwardEmitter::allocate() {
  // Keys and values of a block: half of a 512 KiB cache.
  blockKeys = tiling.rowsWithin(65536, 2, 64, 512);
  packedKeys = k.stack(blockKeys * tiling.depth);
  packedValues = k.stack(blockKeys * tiling.width);
  packedQueries = k.stack(forwardQueryBlock * tiling.width);
  scoreTile = k.stack(forwardQueryBlock * scoreStride());
  outputTile = k.stack(forwardQueryBlock * tiling.width);
  maxima = k.stack(split.rows);
  sums = k.stack(split.rows);
  blockMaxima = k.stack(forwardQueryBlock);
  corrections = k.stack(forwardQueryBlock);
  inverses = k.stack(forwardQueryBlock);
}

void ForwardEmitter::emit() {
  openTask();
  allocate();
  k.forRange(0, split.rows, k.lanes(), [&](Value i) {
    k.store(k.reals(lowestMaximum), k.at(maxima, i));
    k.store(k.reals(0), k.at(sums, i));
  });
  Value low = k.index(0), high = spec.masked() ? taskEnd : k.index(spec.seq);
  if (spec.window > 0)
    low = k.roundDown(k.maximum(k.sub(taskFirst, spec.window - 1), 0), blockKeys);
  k.forRange(low, high, blockKeys, [&](Value firstKey) { keyBlock(firstKey); });
}

void ForwardEmitter::keyBlock(Value firstKey) {
  Value end = spec.masked() ? taskEnd : k.index(spec.seq);
  Value count = k.minimum(k.sub(end, firstKey), blockKeys);
  RowRange range{firstKey, end, k.roundUp(count, tiling.panel)};
  packTransposed(k, tiling, keys, range, packedKeys);
  valuesNotFinite = packRows(k, tiling, values, range, 1, packedValues);

  Value low = taskFirst, high = taskEnd;
  if (spec.masked()) {
    Value ahead = k.maximum(k.sub(firstKey, taskFirst), 0);
    low = k.add(taskFirst, k.roundDown(ahead, forwardQueryBlock));
  }
  if (spec.window > 0)
    high = k.minimum(high, k.add(k.add(firstKey, count), spec.window - 1));
  k.forRange(low, high, forwardQueryBlock, [&](Value firstQuery) {
    Blocks blocks{firstKey, count, firstQuery, {}, k.index(0), range.rows};
    blocks.queries = k.minimum(k.sub(taskEnd, firstQuery), forwardQueryBlock);
    if (spec.masked()) {
      Value last = k.sub(k.add(firstQuery, blocks.queries), firstKey);
      blocks.highKey = k.minimum(range.rows, k.roundUp(last, tiling.panel));
    }
    if (spec.window > 0) {
      Value first = k.sub(k.sub(firstQuery, spec.window - 1), firstKey);
      blocks.lowKey = k.roundDown(k.maximum(first, 0), tiling.panel);
    }
    queryBlock(blocks);
  });
}

void ForwardEmitter::queryBlock(Blocks blocks) {
  packRows(k, tiling, q, {blocks.firstQuery, taskEnd, k.index(forwardQueryBlock)},
           spec.scale * std::numbers::log2e, packedQueries);
  scores(blocks);
  mask(blocks);
  rowMaxima(blocks);
  weights(blocks);
  weighValues(blocks);
  carryOutput(blocks);

  Value lastKey = spec.masked() ? k.add(blocks.firstQuery, blocks.queries) : k.index(spec.seq);
  Value more = k.less(k.add(blocks.firstKey, blockKeys), lastKey);
  k.ifTrue(more, [] {}, [&] { closeRows(blocks); });
}

/// scores = queries keys^T, leaving out tiles in which every key is ahead of every query.
void ForwardEmitter::scores(const Blocks &blocks) {
  int64_t vectors = maxTileVectors(k.target());
  TileSpec tile{tileRows(k.target(), vectors),
                vectors,
                false,
                tiling.width,
                tiling.panel,
                scoreStride(),
                false};
  Value rows = k.roundUp(blocks.queries, tile.rows);
  k.forRange(blocks.lowKey, blocks.highKey, tiling.panel, [&](Value key) {
    Value firstRow = k.index(0);
    if (spec.masked()) {
      Value ahead = k.sub(k.add(blocks.firstKey, key), blocks.firstQuery);
      firstRow = k.roundDown(k.maximum(ahead, 0), tile.rows);
    }
    k.forRange(firstRow, rows, tile.rows, [&](Value i) {
      callTile(k, tile,
               {k.index(tiling.depth), k.at(packedQueries, k.mul(i, tiling.width)),
                k.at(packedKeys, k.mul(key, tiling.depth)), k.at(scoreRow(i), key)});
    });
  });
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
  k.ifTrue(needed, [&] { k.forRange(0, blocks.queries, 1, [&](Value i) { maskRow(blocks, i); }); });
}

/// Keys outside [low, high) become -inf; only the vectors at the ends are touched.
void ForwardEmitter::maskRow(const Blocks &blocks, Value i) {
  Value row = scoreRow(i);
  Value masked = k.reals(-std::numeric_limits<double>::infinity());
  Value position = k.sub(k.add(blocks.firstQuery, i), blocks.firstKey);
  Value high = blocks.keys;
  if (spec.masked())
    high = k.maximum(k.minimum(high, k.add(position, 1)), 0);
  Value from = k.maximum(k.roundDown(high, k.lanes()), blocks.lowKey);
  k.forRange(from, blocks.highKey, k.lanes(), [&](Value j) {
    Value place = k.at(row, j);
    k.store(k.select(k.v.firstLanes(k.sub(high, j)), k.load(place), masked), place);
  });
  if (spec.window == 0)
    return;
  Value low = k.sub(position, spec.window - 1);
  k.forRange(blocks.lowKey, k.minimum(low, blocks.highKey), k.lanes(), [&](Value j) {
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
  // What is carried so far was relative to the old maximum.
  Value carried = carriedAt(maxima, blocks);
  k.forRange(0, blocks.queries, k.lanes(), [&](Value i) {
    Value before = k.load(k.at(carried, i));
    Value now = k.greater(k.load(k.at(blockMaxima, i)), before);
    k.store(now, k.at(carried, i));
    k.store(k.exp2(k.v.sub(before, now)), k.at(corrections, i));
  });
}

/// scores become weights, relative to the row's maximum so far; their sums are carried.
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
  });
}

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
  if (!spec.masked())
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
  return {low, high};
}

void ForwardEmitter::carryOutput(const Blocks &blocks) {
  Value firstBlock = k.index(0);
  if (spec.window > 0) {
    Value first = k.maximum(k.sub(blocks.firstQuery, spec.window - 1), 0);
    firstBlock = k.roundDown(first, blockKeys);
  }
  auto rows = [&](llvm::function_ref<Value(Value i, Value carried, Value fresh, int64_t count)> f) {
    k.forRange(0, blocks.queries, 1, [&](Value i) {
      Value row = k.at(out.base, k.mul(k.add(blocks.firstQuery, i), out.stride));
      Value fresh = k.at(outputTile, k.mul(i, tiling.width));
      storeHeadRow(k, tiling, row, [&](int64_t column, int64_t count) {
        return f(i, k.at(row, column), k.load(k.at(fresh, column)), count);
      });
    });
  };
  k.ifTrue(
      k.less(firstBlock, blocks.firstKey),
      [&] {
        rows([&](Value i, Value carried, Value fresh, int64_t count) {
          Value correction = k.v.splat(k.loadFloat(k.at(corrections, i)));
          return k.v.fma(correction, k.loadFirst(carried, count), fresh);
        });
      },
      [&] { rows([&](Value, Value, Value fresh, int64_t) { return fresh; }); });
}

/// After a row's last key: divides it by its sum, and writes the logarithm of that.
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
    Value row = k.at(out.base, k.mul(query, out.stride));
    Value inverse = k.v.splat(k.loadFloat(k.at(inverses, i)));
    storeHeadRow(k, tiling, row, [&](int64_t column, int64_t count) {
      return k.v.mul(k.loadFirst(k.at(row, column), count), inverse);
    });
  });
}

} // namespace

func::FuncOp emitAttentionForward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                  const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  ForwardEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

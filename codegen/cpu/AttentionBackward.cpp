// Attention, backward. Five products a pair of blocks: the scores again, dP = dO V^T, and from
// P = exp(scores - lse) and dS = P (dP - rowsum(dO O)) the sums dV += P^T dO, dK += dS^T Q and
// dQ += dS K. Key blocks are outside, so that dK and dV of a block stay in the first cache; query
// rows come in superblocks whose packed Q, dO and dQ fit the second. A task owns whatever it adds
// to: nothing is added up across tasks.
#include "codegen/cpu/AttentionOperands.h"

#include <limits>
#include <numbers>
#include <numeric>

using namespace mlir;
namespace gradc::codegen {

namespace {

/// The part of the work that one task does, for one key head of one sequence.
struct Share {
  Value batch, kvHead;
  Value firstHead, endHead; ///< query heads
  Value firstKey, endKey;
  Value firstQuery, endQuery;
  bool keyGradients, queryGradients;
};

class BackwardEmitter {
public:
  BackwardEmitter(KernelBuilder &k, const AttentionSpec &spec)
      : k(k), spec(spec), tiling(spec, k.target()),
        scoreTile{tileRows(k.target(), maxTileVectors(k.target())), maxTileVectors(k.target())} {}
  void emit();

private:
  /// Queries are relative to the superblock, which begins at token `superFirst`.
  struct Blocks {
    Value firstKey, superFirst, firstQuery;
    Value live, queries; ///< rows that exist and see a key, and the same in whole units
  };

  void allocate();
  void share(const Share &share);
  void queryHead(const Share &share, Value head);
  void superblock(const Share &share, Value first);
  void rowConstants(Value first, Value count);
  void keyBlock(const Share &share, Value firstKey, Value superFirst, Value superQueries);
  void scores(const Blocks &blocks);
  void scoreGradients(const Blocks &blocks);
  void scoreGradientRow(const Blocks &blocks, Value i, bool masked);
  Value visible(const Blocks &blocks, Value i, int64_t column);
  void keyProducts(const Blocks &blocks);
  void keyTiles(const Blocks &blocks, const TileSpec &tile, int64_t column, int64_t low,
                int64_t high);
  void queryProduct(const Blocks &blocks);
  void queryTile(const Blocks &blocks, const TileSpec &tile, int64_t column, Value i);
  void zeroRows(const HeadRows &rows, Value first, Value end);
  void addKeyGradients(Value firstKey, Value end);
  void storeQueryGradients(Value first, Value count);

  /// Query blocks start and end at multiples of this: whole tiles, whole units of depth.
  int64_t rowUnit() const;
  Value packedRow(Value operand, Value i) { return k.at(operand, k.mul(i, tiling.width)); }
  Value tileRow(Value tile, Value i) { return k.at(tile, k.mul(i, backwardKeyBlock)); }

  KernelBuilder &k;
  const AttentionSpec &spec;
  AttentionTiling tiling;
  struct {
    int64_t rows, vectors;
  } scoreTile;
  int64_t superRows = 0;

  Value buffers[9];
  HeadRows q, keys, values, out, dOut, dq, dk, dv;
  Value lse; ///< of this query head
  // Superblock: [superRows][width], and [superRows] each.
  Value packedQ, packedDOut, sumsDq, rowLse, rowDelta;
  // Key block: transposed panels, [64][width] each.
  Value keysT, valuesT, packedKeys, sumsDk, sumsDv;
  Value queriesNotFinite, keysNotFinite; ///< i1, of the superblock, of the key block
  Value p, dS;                           ///< [backwardQueryBlock][64]; first hold the scores and dP
};

void BackwardEmitter::emit() {
  for (int i = 0; i < 9; ++i)
    buffers[i] = k.buffer(i);
  allocate();
  BackwardSplit split = backwardSplit(spec);
  Value zero = k.index(0), seq = k.index(spec.seq), task = k.task();
  auto group = [&](Value kvHead) { return k.mul(kvHead, spec.group()); };
  if (!split.apart) {
    Value batch = k.divide(task, spec.kvHeads), kvHead = k.remainder(task, spec.kvHeads);
    Value first = group(kvHead);
    share({batch, kvHead, first, k.add(first, spec.group()), zero, seq, zero, seq, true, true});
    return;
  }
  Value keyTasks = k.index(spec.batch * spec.kvHeads * split.keyParts);
  k.ifTrue(
      k.less(task, keyTasks),
      [&] {
        Value owner = k.divide(task, split.keyParts), part = k.remainder(task, split.keyParts);
        Value batch = k.divide(owner, spec.kvHeads), kvHead = k.remainder(owner, spec.kvHeads);
        Value first = group(kvHead), key = k.mul(part, split.keyRows);
        Value endKey = k.minimum(k.add(key, split.keyRows), spec.seq);
        Value endQuery = seq; // of those that see the keys
        if (spec.window > 0)
          endQuery = k.minimum(k.add(endKey, spec.window - 1), spec.seq);
        share({batch, kvHead, first, k.add(first, spec.group()), key, endKey,
               spec.masked() ? key : zero, endQuery, true, false});
      },
      [&] {
        Value number = k.sub(task, keyTasks);
        Value owner = k.divide(number, split.queryParts);
        Value part = k.remainder(number, split.queryParts);
        Value batch = k.divide(owner, spec.heads), head = k.remainder(owner, spec.heads);
        Value query = k.mul(part, split.queryRows);
        share({batch, k.divide(head, spec.group()), head, k.add(head, 1), zero, seq, query,
               k.minimum(k.add(query, split.queryRows), spec.seq), false, true});
      });
}

int64_t BackwardEmitter::rowUnit() const {
  int64_t unit = std::lcm(scoreTile.rows, tileDepthUnit);
  for (ColumnTile columns : columnTiles(k.target(), tiling.width))
    unit = std::lcm(unit, tileRows(k.target(), columns.vectors));
  return unit;
}

void BackwardEmitter::allocate() {
  superRows = tiling.rowsWithin(98304, 3, backwardQueryBlock, 3 * backwardQueryBlock);
  packedQ = k.stack(superRows * tiling.width);
  packedDOut = k.stack(superRows * tiling.width);
  sumsDq = k.stack(superRows * tiling.width);
  rowLse = k.stack(superRows);
  rowDelta = k.stack(superRows);
  keysT = k.stack(backwardKeyBlock * tiling.depth);
  valuesT = k.stack(backwardKeyBlock * tiling.depth);
  packedKeys = k.stack(backwardKeyBlock * tiling.width);
  sumsDk = k.stack(backwardKeyBlock * tiling.width);
  sumsDv = k.stack(backwardKeyBlock * tiling.width);
  p = k.stack(backwardQueryBlock * backwardKeyBlock);
  dS = k.stack(backwardQueryBlock * backwardKeyBlock);
}

void BackwardEmitter::share(const Share &share) {
  keys = headRows(k, buffers[1], spec.k, share.batch, share.kvHead);
  values = headRows(k, buffers[2], spec.v, share.batch, share.kvHead);
  dk = headRows(k, buffers[7], spec.dk, share.batch, share.kvHead);
  dv = headRows(k, buffers[8], spec.dv, share.batch, share.kvHead);
  if (share.keyGradients) {
    zeroRows(dk, share.firstKey, share.endKey);
    zeroRows(dv, share.firstKey, share.endKey);
  }
  k.forRange(share.firstHead, share.endHead, 1, [&](Value head) { queryHead(share, head); });
}

void BackwardEmitter::queryHead(const Share &share, Value head) {
  q = headRows(k, buffers[0], spec.q, share.batch, head);
  out = headRows(k, buffers[3], spec.o, share.batch, head);
  dOut = headRows(k, buffers[5], spec.dO, share.batch, head);
  dq = headRows(k, buffers[6], spec.dq, share.batch, head);
  lse = k.at(buffers[4], k.mul(k.add(k.mul(share.batch, spec.heads), head), spec.seq));
  k.forRange(share.firstQuery, share.endQuery, superRows,
             [&](Value first) { superblock(share, first); });
}

void BackwardEmitter::superblock(const Share &share, Value first) {
  Value count = k.minimum(k.sub(share.endQuery, first), superRows);
  Value padded = k.roundUp(count, queryUnit);
  RowRange range{first, k.add(first, count), padded};
  queriesNotFinite =
      k.either(packRows(k, tiling, q, range, spec.scale * std::numbers::log2e, packedQ),
               packRows(k, tiling, dOut, range, 1, packedDOut));
  rowConstants(first, count);
  if (share.queryGradients)
    zeroScratch(k, sumsDq, k.mul(padded, tiling.width));

  Value low = share.firstKey, high = share.endKey;
  if (spec.masked())
    high = k.minimum(high, range.end);
  if (spec.window > 0) {
    Value seen = k.maximum(k.sub(first, spec.window - 1), 0);
    low = k.maximum(low, k.roundDown(seen, backwardKeyBlock));
  }
  k.forRange(low, high, backwardKeyBlock,
             [&](Value firstKey) { keyBlock(share, firstKey, first, count); });
  if (share.queryGradients)
    storeQueryGradients(first, count);
}

/// Of each row: lse in base 2, and rowsum(dO O). Rows that see no key get an lse of +inf, which
/// makes all of their weights zero.
void BackwardEmitter::rowConstants(Value first, Value count) {
  double infinity = std::numeric_limits<double>::infinity();
  k.forRange(0, count, 1, [&](Value i) {
    Value token = k.add(first, i), row = k.at(out.base, k.mul(token, out.stride));
    Value sum = k.reals(0);
    for (int64_t column = 0; column < tiling.width; column += k.lanes()) {
      Value x = k.loadFirst(k.at(row, column), std::min(k.lanes(), spec.headDim - column));
      sum = k.v.fma(x, k.load(k.at(packedRow(packedDOut, i), column)), sum);
    }
    k.store(k.sumLanes(sum), k.at(rowDelta, i));
    Value log = k.loadFloat(k.at(lse, token));
    Value empty = k.equalF(log, k.v.constant(k.v.f32, -infinity));
    Value base2 = k.v.mul(log, k.v.constant(k.v.f32, std::numbers::log2e));
    k.store(k.select(empty, k.v.constant(k.v.f32, infinity), base2), k.at(rowLse, i));
  });
}

void BackwardEmitter::keyBlock(const Share &share, Value firstKey, Value superFirst,
                               Value superQueries) {
  RowRange range{firstKey, k.index(spec.seq), k.index(backwardKeyBlock)};
  packTransposed(k, tiling, keys, range, keysT);
  packTransposed(k, tiling, values, range, valuesT);
  if (share.queryGradients)
    keysNotFinite = packRows(k, tiling, keys, range, 1, packedKeys);
  if (share.keyGradients) {
    zeroScratch(k, sumsDk, k.index(backwardKeyBlock * tiling.width));
    zeroScratch(k, sumsDv, k.index(backwardKeyBlock * tiling.width));
  }
  Value low = k.index(0), high = superQueries;
  if (spec.masked())
    low = k.roundDown(k.maximum(k.sub(firstKey, superFirst), 0), rowUnit());
  if (spec.window > 0) {
    Value last = k.add(firstKey, backwardKeyBlock - 1 + spec.window);
    high = k.minimum(high, k.sub(last, superFirst));
  }
  k.forRange(low, high, backwardQueryBlock, [&](Value query) {
    Value count = k.minimum(k.sub(high, query), backwardQueryBlock);
    Blocks blocks{firstKey, superFirst, query, count, k.roundUp(count, rowUnit())};
    scores(blocks);
    scoreGradients(blocks);
    if (share.keyGradients)
      keyProducts(blocks);
    if (share.queryGradients)
      queryProduct(blocks);
  });
  if (share.keyGradients)
    addKeyGradients(firstKey, share.endKey);
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
  Value beyond = k.add(blocks.firstKey, backwardKeyBlock);
  Value first = k.add(blocks.superFirst, blocks.firstQuery);
  Value needed = k.less(k.index(spec.seq), beyond);
  if (spec.masked())
    needed = k.either(needed, k.less(k.add(first, 1), beyond));
  if (spec.window > 0) {
    Value last = k.add(first, k.sub(blocks.live, 1));
    needed = k.either(needed, k.less(k.add(blocks.firstKey, spec.window - 1), last));
  }
  auto rows = [&](bool masked) {
    k.forRange(0, blocks.live, 1, [&](Value i) { scoreGradientRow(blocks, i, masked); });
  };
  k.ifTrue(needed, [&] { rows(true); }, [&] { rows(false); });
  Value padding = k.mul(k.sub(blocks.queries, blocks.live), backwardKeyBlock);
  zeroScratch(k, tileRow(p, blocks.live), padding);
  zeroScratch(k, tileRow(dS, blocks.live), padding);
}

void BackwardEmitter::scoreGradientRow(const Blocks &blocks, Value i, bool masked) {
  Value row = k.add(blocks.firstQuery, i);
  Value log = k.v.splat(k.loadFloat(k.at(rowLse, row)));
  Value delta = k.v.splat(k.loadFloat(k.at(rowDelta, row)));
  for (int64_t column = 0; column < backwardKeyBlock; column += k.lanes()) {
    Value pPlace = k.at(tileRow(p, i), column), dPlace = k.at(tileRow(dS, i), column);
    Value weight = k.exp2(k.v.sub(k.load(pPlace), log));
    Value gradient = k.v.mul(weight, k.v.sub(k.load(dPlace), delta));
    if (masked) {
      Value seen = visible(blocks, i, column);
      weight = k.select(seen, weight, k.reals(0));
      gradient = k.select(seen, gradient, k.reals(0));
    }
    k.store(weight, pPlace);
    k.store(gradient, dPlace);
  }
}

/// Mask of the keys from `column` on that row i sees.
Value BackwardEmitter::visible(const Blocks &blocks, Value i, int64_t column) {
  Value key = k.add(blocks.firstKey, column);
  Value query = k.add(k.add(blocks.superFirst, blocks.firstQuery), i);
  Value high = k.index(spec.seq);
  if (spec.masked())
    high = k.minimum(high, k.add(query, 1));
  Value seen = k.v.firstLanes(k.sub(high, key));
  if (spec.window == 0)
    return seen;
  Value hidden = k.v.firstLanes(k.sub(k.sub(query, spec.window - 1), key));
  return k.select(hidden, k.v.constant(hidden.getType(), 0), seen);
}

/// dV += P^T dO and dK += dS^T Q. Where Q or dO holds an infinity or NaN, each key over the queries
/// that see it only: 0 times NaN is not 0.
void BackwardEmitter::keyProducts(const Blocks &blocks) {
  auto all = [&](bool exact) {
    for (ColumnTile columns : columnTiles(k.target(), tiling.width)) {
      TileSpec tile{tileRows(k.target(), columns.vectors),
                    columns.vectors,
                    true,
                    backwardKeyBlock,
                    tiling.width,
                    tiling.width,
                    true};
      if (exact)
        tile.rows = tile.depthUnit = 1;
      int64_t whole = backwardKeyBlock / tile.rows * tile.rows;
      keyTiles(blocks, tile, columns.column, 0, whole);
      tile.rows = backwardKeyBlock - whole;
      if (tile.rows > 0)
        keyTiles(blocks, tile, columns.column, whole, backwardKeyBlock);
    }
  };
  if (!spec.masked())
    return all(false);
  k.ifTrue(queriesNotFinite, [&] { all(true); }, [&] { all(false); });
}

/// Keys low .. high, a tile's rows at a time, over the queries that see some key of the tile.
void BackwardEmitter::keyTiles(const Blocks &blocks, const TileSpec &tile, int64_t column,
                               int64_t low, int64_t high) {
  k.forRange(low, high, tile.rows, [&](Value i) {
    // Relative to the block's first query.
    Value first = k.index(0), end = blocks.queries;
    Value position = k.sub(k.add(blocks.firstKey, i), k.add(blocks.superFirst, blocks.firstQuery));
    if (spec.masked())
      first = k.roundDown(k.maximum(position, 0), tile.depthUnit);
    if (spec.window > 0) {
      Value seen = k.maximum(k.add(position, tile.rows - 1 + spec.window), 0);
      end = k.minimum(end, k.roundUp(seen, tile.depthUnit));
    }
    Value depth = k.sub(end, first), row = k.add(blocks.firstQuery, first);
    auto product = [&](Value a, Value b, Value to) {
      callTile(k, tile,
               {depth, k.at(tileRow(a, first), i), k.at(packedRow(b, row), column),
                k.at(packedRow(to, i), column)});
    };
    product(p, packedDOut, sumsDv);
    product(dS, packedQ, sumsDk);
  });
}

/// dQ += dS K, over the keys that some row of the tile sees; row by row where K is not finite.
void BackwardEmitter::queryProduct(const Blocks &blocks) {
  auto all = [&](bool exact) {
    for (ColumnTile columns : columnTiles(k.target(), tiling.width)) {
      TileSpec tile{tileRows(k.target(), columns.vectors),
                    columns.vectors,
                    false,
                    backwardKeyBlock,
                    tiling.width,
                    tiling.width,
                    true};
      if (exact)
        tile.rows = tile.depthUnit = 1;
      k.forRange(0, blocks.queries, tile.rows,
                 [&](Value i) { queryTile(blocks, tile, columns.column, i); });
    }
  };
  if (!spec.masked())
    return all(false);
  k.ifTrue(keysNotFinite, [&] { all(true); }, [&] { all(false); });
}

void BackwardEmitter::queryTile(const Blocks &blocks, const TileSpec &tile, int64_t column,
                                Value i) {
  Value row = k.add(blocks.firstQuery, i);
  Value position = k.sub(k.add(blocks.superFirst, row), blocks.firstKey);
  Value first = k.index(0), end = k.index(backwardKeyBlock);
  if (spec.masked()) {
    Value past = k.maximum(k.add(position, tile.rows), 0);
    end = k.minimum(end, k.roundUp(past, tile.depthUnit));
  }
  if (spec.window > 0)
    first = k.roundDown(k.maximum(k.sub(position, spec.window - 1), 0), tile.depthUnit);
  callTile(k, tile,
           {k.sub(end, first), k.at(tileRow(dS, i), first),
            k.at(packedRow(packedKeys, first), column), k.at(packedRow(sumsDq, row), column)});
}

void BackwardEmitter::zeroRows(const HeadRows &rows, Value first, Value end) {
  k.forRange(first, end, 1, [&](Value token) {
    storeHeadRow(k, tiling, k.at(rows.base, k.mul(token, rows.stride)),
                 [&](int64_t, int64_t) { return k.reals(0); });
  });
}

void BackwardEmitter::addKeyGradients(Value firstKey, Value end) {
  Value count = k.minimum(k.sub(end, firstKey), backwardKeyBlock);
  auto add = [&](const HeadRows &rows, Value sums, double factor) {
    k.forRange(0, count, 1, [&](Value i) {
      Value row = k.at(rows.base, k.mul(k.add(firstKey, i), rows.stride));
      storeHeadRow(k, tiling, row, [&](int64_t column, int64_t count) {
        Value fresh = k.load(k.at(packedRow(sums, i), column));
        return k.v.fma(fresh, k.reals(factor), k.loadFirst(k.at(row, column), count));
      });
    });
  };
  add(dv, sumsDv, 1);
  add(dk, sumsDk, std::numbers::ln2); // the packed queries carry scale * log2(e)
}

void BackwardEmitter::storeQueryGradients(Value first, Value count) {
  k.forRange(0, count, 1, [&](Value i) {
    Value row = k.at(dq.base, k.mul(k.add(first, i), dq.stride));
    storeHeadRow(k, tiling, row, [&](int64_t column, int64_t) {
      return k.v.mul(k.load(k.at(packedRow(sumsDq, i), column)), k.reals(spec.scale));
    });
  });
}

} // namespace

func::FuncOp emitAttentionBackward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                   const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  BackwardEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

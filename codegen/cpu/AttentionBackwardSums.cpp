// Attention, backward: the sums over blocks, dV, dK and dQ.
#include "codegen/cpu/AttentionBackwardEmitter.h"

#include <numbers>

using namespace mlir;
namespace gradc::codegen {

/// dV += P^T dO and dK += dS^T Q.
void BackwardEmitter::keyProducts(const Blocks &blocks) {
  for (ColumnTile columns : columnTiles(k.target(), tiling.width)) {
    TileSpec tile{tileRows(k.target(), columns.vectors),
                  columns.vectors,
                  true,
                  backwardKeyBlock,
                  tiling.width,
                  tiling.width,
                  true};
    int64_t whole = backwardKeyBlock / tile.rows * tile.rows;
    keyTiles(blocks, tile, columns.column, 0, whole);
    tile.rows = backwardKeyBlock - whole;
    if (tile.rows > 0)
      keyTiles(blocks, tile, columns.column, whole, backwardKeyBlock);
  }
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

/// dQ += dS K, over the keys that some row of the tile sees.
void BackwardEmitter::queryProduct(const Blocks &blocks) {
  for (ColumnTile columns : columnTiles(k.target(), tiling.width)) {
    TileSpec tile{tileRows(k.target(), columns.vectors),
                  columns.vectors,
                  false,
                  backwardKeyBlock,
                  tiling.width,
                  tiling.width,
                  true};
    k.forRange(0, blocks.queries, tile.rows,
               [&](Value i) { queryTile(blocks, tile, columns.column, i); });
  }
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
  if (documents) {
    Value seen = documents.leastOf(k.add(blocks.superFirst, row), tile.rows);
    seen = k.roundDown(k.maximum(k.sub(seen, blocks.firstKey), 0), tile.depthUnit);
    first = k.minimum(k.maximum(first, seen), end);
  }
  callTile(k, tile,
           {k.sub(end, first), k.at(tileRow(dS, i), first),
            k.at(packedRow(packedKeys, first), column), k.at(packedRow(sumsDq, row), column)});
}

void BackwardEmitter::zeroRows(const HeadRows &rows, Value first, Value end) {
  k.forRange(first, end, 1, [&](Value token) {
    storeHeadRow(k, tiling, rows, token, [&](int64_t, Value, int64_t) { return k.reals(0); });
  });
}

void BackwardEmitter::addKeyGradients(Value firstKey, Value end) {
  Value count = k.minimum(k.sub(end, firstKey), backwardKeyBlock);
  auto add = [&](const HeadRows &rows, Value sums, double factor) {
    k.forRange(0, count, 1, [&](Value i) {
      storeHeadRow(k, tiling, rows, k.add(firstKey, i),
                   [&](int64_t column, Value address, int64_t lanes) {
                     Value fresh = k.load(k.at(packedRow(sums, i), column));
                     return k.v.fma(fresh, k.reals(factor), rows.load(k, address, lanes));
                   });
    });
  };
  add(gatheredDv, sumsDv, 1);
  add(gatheredDk, sumsDk, std::numbers::ln2); // the packed queries carry scale * log2(e)
}

/// What was gathered in scratch goes to the outputs, rounded.
void BackwardEmitter::storeKeyGradients(Value first, Value end) {
  auto store = [&](const HeadRows &from, const HeadRows &to) {
    k.forRange(first, end, 1, [&](Value token) {
      Value row = from.row(k, token);
      storeHeadRow(k, tiling, to, token, [&](int64_t column, Value, int64_t lanes) {
        return from.load(k, from.at(k, row, k.index(column)), lanes);
      });
    });
  };
  store(gatheredDk, dk);
  store(gatheredDv, dv);
}

void BackwardEmitter::storeQueryGradients(Value first, Value count) {
  k.forRange(0, count, 1, [&](Value i) {
    storeHeadRow(k, tiling, dq, k.add(first, i), [&](int64_t column, Value, int64_t) {
      return k.v.mul(k.load(k.at(packedRow(sumsDq, i), column)), k.reals(spec.scale));
    });
  });
}

} // namespace gradc::codegen

// Attention, backward: tasks, and the blocks of queries and keys that they go through.
#include "codegen/cpu/AttentionBackwardEmitter.h"

#include <numbers>
#include <numeric>

using namespace mlir;
namespace gradc::codegen {

BackwardEmitter::BackwardEmitter(KernelBuilder &k, const AttentionSpec &spec)
    : k(k), spec(spec), tiling(spec, k.target()), split(backwardSplit(spec)),
      scoreTile{tileRows(k.target(), maxTileVectors(k.target())), maxTileVectors(k.target())},
      documents(k, spec, 6), dropout(k, spec, spec.documents ? 7 : 6, backwardKeyBlock) {}

void BackwardEmitter::emit() {
  allocate();
  if (!split.apart)
    return wholeHead();
  Value keyTasks = k.index(spec.batch * spec.kvHeads * split.keyParts);
  k.ifTrue(
      k.less(k.task(), keyTasks), [&] { keyShare(); },
      [&] { queryShare(k.sub(k.task(), keyTasks)); });
}

/// A task's key head with the query heads that read it.
void BackwardEmitter::wholeHead() {
  Value batch = k.divide(k.task(), spec.kvHeads), kvHead = k.remainder(k.task(), spec.kvHeads);
  Value first = k.mul(kvHead, spec.group()), zero = k.index(0), seq = k.index(spec.seq);
  share({batch, kvHead, first, k.add(first, spec.group()), zero, seq, zero, seq, true, true});
}

/// A part of the keys of a key head, with the queries that see them.
void BackwardEmitter::keyShare() {
  Value owner = k.divide(k.task(), split.keyParts), part = k.remainder(k.task(), split.keyParts);
  Value batch = k.divide(owner, spec.kvHeads), kvHead = k.remainder(owner, spec.kvHeads);
  Value first = k.mul(kvHead, spec.group()), key = k.mul(part, split.keyRows);
  Value endKey = k.minimum(k.add(key, split.keyRows), spec.seq);
  Value query = spec.masked() ? key : k.index(0), endQuery = k.index(spec.seq);
  if (spec.window > 0)
    endQuery = k.minimum(k.add(endKey, spec.window - 1), spec.seq);
  if (documents) {
    documents.openSequence(batch);
    endQuery = documents.endOfSeeing(query, endQuery, endKey);
  }
  share({batch, kvHead, first, k.add(first, spec.group()), key, endKey, query, endQuery, true,
         false});
}

/// A part of the queries of a query head, with all keys.
void BackwardEmitter::queryShare(Value number) {
  Value owner = k.divide(number, split.queryParts), part = k.remainder(number, split.queryParts);
  Value batch = k.divide(owner, spec.heads), head = k.remainder(owner, spec.heads);
  Value query = k.mul(part, split.queryRows);
  Value endQuery = k.minimum(k.add(query, split.queryRows), spec.seq);
  share({batch, k.divide(head, spec.group()), head, k.add(head, 1), k.index(0), k.index(spec.seq),
         query, endQuery, false, true});
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
  keys = headRows(k, k.buffer(1), spec, spec.k, share.batch, share.kvHead);
  values = headRows(k, k.buffer(2), spec, spec.v, share.batch, share.kvHead);
  documents.openSequence(share.batch);
  int results = 6 + spec.maskBuffers();
  dk = headRows(k, k.buffer(results + 1), spec, spec.dk, share.batch, share.kvHead);
  dv = headRows(k, k.buffer(results + 2), spec, spec.dv, share.batch, share.kvHead);
  if (share.keyGradients) {
    gatheredDk = gatheringRows(k, tiling, dk, share.firstKey, split.keyRows);
    gatheredDv = gatheringRows(k, tiling, dv, share.firstKey, split.keyRows);
    zeroRows(gatheredDk, share.firstKey, share.endKey);
    zeroRows(gatheredDv, share.firstKey, share.endKey);
  }
  k.forRange(share.firstHead, share.endHead, 1, [&](Value head) { queryHead(share, head); });
  if (share.keyGradients && spec.narrow())
    storeKeyGradients(share.firstKey, share.endKey);
}

void BackwardEmitter::queryHead(const Share &share, Value head) {
  q = headRows(k, k.buffer(0), spec, spec.q, share.batch, head);
  out = headRows(k, k.buffer(3), spec, spec.o, share.batch, head);
  dOut = headRows(k, k.buffer(5), spec, spec.dO, share.batch, head);
  dq = headRows(k, k.buffer(6 + spec.maskBuffers()), spec, spec.dq, share.batch, head);
  lse = k.at(k.buffer(4), k.mul(k.add(k.mul(share.batch, spec.heads), head), spec.seq));
  dropout.openHead(share.batch, head);
  k.forRange(share.firstQuery, share.endQuery, superRows,
             [&](Value first) { superblock(share, first); });
}

void BackwardEmitter::superblock(const Share &share, Value first) {
  Value count = k.minimum(k.sub(share.endQuery, first), superRows);
  Value padded = k.roundUp(count, queryUnit);
  RowRange range{first, k.add(first, count), padded};
  packFiniteRows(k, tiling, q, range, spec.scale * std::numbers::log2e, packedQ);
  packFiniteRows(k, tiling, dOut, range, 1, packedDOut);
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
  if (documents)
    low = k.maximum(low, k.roundDown(documents.bounds(first, range.end).least, backwardKeyBlock));
  k.forRange(low, high, backwardKeyBlock,
             [&](Value firstKey) { keyBlock(share, firstKey, first, count); });
  if (share.queryGradients)
    storeQueryGradients(first, count);
}

void BackwardEmitter::keyBlock(const Share &share, Value firstKey, Value superFirst,
                               Value superQueries) {
  RowRange range{firstKey, k.index(spec.seq), k.index(backwardKeyBlock)};
  keysNotFinite = k.either(packTransposed(k, tiling, keys, range, keysT),
                           packTransposed(k, tiling, values, range, valuesT));
  if (share.queryGradients)
    packFiniteRows(k, tiling, keys, range, 1, packedKeys);
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
  if (documents) {
    Value end = documents.endOfSeeing(k.add(superFirst, low), k.add(superFirst, high),
                                      k.add(firstKey, backwardKeyBlock));
    high = k.minimum(high, k.sub(end, superFirst));
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

func::FuncOp emitAttentionBackward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                   const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  BackwardEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

// Attention, forward: tasks, blocks of keys and of queries, and their scores.
#include "codegen/cpu/AttentionForwardEmitter.h"

#include <numbers>

using namespace mlir;
namespace gradc::codegen {

/// Keys and values of a block take half of a 512 KiB cache.
static int64_t keysOfBlock(const AttentionTiling &tiling) {
  return tiling.rowsWithin(65536, 2, 64, 512);
}

ForwardEmitter::ForwardEmitter(KernelBuilder &k, const AttentionSpec &spec)
    : k(k), spec(spec), tiling(spec, k.target()), split(forwardSplit(spec)),
      blockKeys(keysOfBlock(tiling)), documents(k, spec, 3),
      dropout(k, spec, spec.documents ? 4 : 3, blockKeys) {}

void ForwardEmitter::openTask() {
  Value head = k.divide(k.task(), split.parts), part = k.remainder(k.task(), split.parts);
  // Later rows of a causal head see more keys: the larger tasks go first.
  part = k.sub(k.index(split.parts - 1), part);
  Value batch = k.divide(head, spec.heads), h = k.remainder(head, spec.heads);
  Value kvHead = k.divide(h, spec.group());
  int results = 3 + spec.maskBuffers();
  q = headRows(k, k.buffer(0), spec, spec.q, batch, h);
  keys = headRows(k, k.buffer(1), spec, spec.k, batch, kvHead);
  values = headRows(k, k.buffer(2), spec, spec.v, batch, kvHead);
  out = headRows(k, k.buffer(results), spec, spec.o, batch, h);
  lse = k.at(k.buffer(results + 1), k.mul(head, spec.seq));
  taskFirst = k.mul(part, split.rows);
  taskEnd = k.minimum(k.add(taskFirst, split.rows), spec.seq);
  documents.openSequence(batch);
  dropout.openHead(batch, h);
}

void ForwardEmitter::allocate() {
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
  sumsOut = gatheringRows(k, tiling, out, taskFirst, split.rows);
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
  if (documents) {
    Value least = k.minimum(documents.bounds(taskFirst, taskEnd).least, taskFirst);
    low = k.maximum(low, k.roundDown(least, blockKeys));
  }
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
    Blocks blocks{firstKey, count, firstQuery, {}, k.index(0), range.rows, {}, {}};
    blocks.queries = k.minimum(k.sub(taskEnd, firstQuery), forwardQueryBlock);
    limitKeys(blocks, range.rows);
    if (!documents)
      return queryBlock(blocks);
    Value seen = k.less(blocks.oldestKey, k.add(firstKey, blockKeys));
    k.ifTrue(seen, [&] { queryBlock(blocks); });
  });
}

/// Behind the last key that some query of the block sees, in any key block.
Value ForwardEmitter::endOfKeys(const Blocks &blocks) {
  return spec.masked() ? k.add(blocks.firstQuery, blocks.queries) : k.index(spec.seq);
}

void ForwardEmitter::limitKeys(Blocks &blocks, Value packedKeyRows) {
  if (spec.masked()) {
    Value last = k.sub(endOfKeys(blocks), blocks.firstKey);
    blocks.highKey = k.minimum(packedKeyRows, k.roundUp(last, tiling.panel));
  }
  if (!spec.forgets())
    return;
  blocks.oldestKey = k.index(0);
  if (spec.window > 0)
    blocks.oldestKey = k.maximum(k.sub(blocks.firstQuery, spec.window - 1), 0);
  if (documents) {
    auto [least, greatest] =
        documents.bounds(blocks.firstQuery, k.add(blocks.firstQuery, blocks.queries));
    least = k.minimum(least, k.sub(endOfKeys(blocks), 1));
    blocks.oldestKey = k.maximum(blocks.oldestKey, least);
    blocks.latestStart = greatest;
  }
  Value first = k.maximum(k.sub(blocks.oldestKey, blocks.firstKey), 0);
  blocks.lowKey = k.roundDown(first, tiling.panel);
}

void ForwardEmitter::queryBlock(const Blocks &blocks) {
  packRows(k, tiling, q, {blocks.firstQuery, taskEnd, k.index(forwardQueryBlock)},
           spec.scale * std::numbers::log2e, packedQueries);
  scores(blocks);
  softmax(blocks);
  weighValues(blocks);
  carryOutput(blocks);

  Value more = k.less(k.add(blocks.firstKey, blockKeys), endOfKeys(blocks));
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

func::FuncOp emitAttentionForward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                  const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  ForwardEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

// What attention's launches do: the tiles that each block passes over, counted.
#include "codegen/gpu/Attention.h"

#include <algorithm>

namespace gradc::codegen::gpu {

namespace {

/// Tiles of the other side that a block sees, by AttentionMask's ranges without documents.
struct Tiles {
  int64_t count = 0, rows = 0; ///< rows: those of them that exist

  Tiles(int64_t low, int64_t high, int64_t tile, int64_t seq) {
    int64_t first = low / tile, end = (high + tile - 1) / tile;
    count = std::max<int64_t>(0, end - first);
    rows = std::max<int64_t>(0, std::min(seq, end * tile) - first * tile);
  }
};

Tiles keysOf(const AttentionSpec &s, int64_t query, int64_t rows, int64_t tile) {
  int64_t high = s.masked() ? std::min(s.seq, query + rows) : s.seq;
  int64_t low = s.window > 0 ? std::max<int64_t>(0, query - (s.window - 1)) : 0;
  return {low, high, tile, s.seq};
}

Tiles queriesOf(const AttentionSpec &s, int64_t key, int64_t rows, int64_t tile) {
  int64_t low = s.masked() ? key : 0;
  int64_t high = s.window > 0 ? std::min(s.seq, key + rows + s.window - 1) : s.seq;
  return {low, high, tile, s.seq};
}

/// Of all blocks of a head: the tiles and rows that they pass over, and the pairs of rows of all.
struct Passes {
  int64_t tiles = 0, rows = 0, pairs = 0;
};

template <typename Seen>
Passes passes(const AttentionSpec &s, const AttentionSchedule &schedule, Seen seen) {
  Passes sum;
  for (int64_t row = 0; row < s.seq; row += schedule.rows()) {
    Tiles tiles = seen(s, row, schedule.rows(), schedule.tile);
    sum.tiles += tiles.count;
    sum.rows += tiles.rows;
  }
  sum.pairs = sum.tiles * schedule.tile * schedule.rows();
  return sum;
}

int64_t visiblePairs(const AttentionSpec &s) {
  int64_t pairs = 0;
  for (int64_t query = 0; query < s.seq; ++query) {
    int64_t first = s.window > 0 ? std::max<int64_t>(0, query - s.window + 1) : 0;
    pairs += (s.masked() ? query + 1 : s.seq) - first;
  }
  return pairs * s.batch * s.heads;
}

/// What a mask is made of: documents' first keys, which every thread of a block reads and which
/// decide how many tiles it sees; the four numbers that key dropout.
void addMask(const AttentionSpec &s, KernelWork &work) {
  constexpr int64_t bytes = 4;
  if (s.documents) {
    for (BufferTraffic &operand : work.buffers)
      operand.atMost = !operand.cached;
    work.buffers.push_back({s.batch * s.seq * bytes, 0, true});
  }
  for (int i = s.documents ? 1 : 0; i < s.maskBuffers(); ++i)
    work.buffers.push_back({bytes, 0, true});
}

} // namespace

KernelWork attentionForwardWork(const AttentionSpec &s) {
  Passes sum = passes(s, forwardSchedule(s), keysOf);
  int64_t heads = s.batch * s.heads, rowBytes = s.headDim * row::byteSize(s.dtype);
  int64_t once = heads * s.seq * rowBytes, again = heads * sum.rows * rowBytes;
  KernelWork work;
  work.buffers = {{once, 0}, {again, 0}, {again, 0}};
  addMask(s, work);
  work.buffers.push_back({0, once});
  work.buffers.push_back({0, heads * s.seq * 4});
  work.flops = 4 * s.headDim * heads * sum.pairs;
  work.leastFlops = 4 * s.headDim * visiblePairs(s);
  work.reason = "each block of queries reads the keys and values that it sees, from the L2 cache; "
                "tiles at the mask's edge are computed whole";
  return work;
}

KernelWork attentionBackwardWork(const AttentionSpec &s) {
  AttentionSchedule ofKeys = keySchedule(s), ofQueries = querySchedule(s);
  Passes forKeys = passes(s, ofKeys, queriesOf), forQueries = passes(s, ofQueries, keysOf);
  int64_t heads = s.batch * s.heads, rowBytes = s.headDim * row::byteSize(s.dtype);
  int64_t queries = heads * s.seq * rowBytes, keys = s.batch * s.kvHeads * s.seq * rowBytes;
  // Blocks of queries compute rowsum(dO * O) of all their rows, blocks of keys of all rows of the
  // tiles that they see: rows beyond the sequence read its last one.
  int64_t ownRows = (s.seq + ofQueries.rows() - 1) / ofQueries.rows() * ofQueries.rows();
  int64_t sums = heads * (ownRows + forKeys.tiles * ofKeys.tile) * rowBytes;
  int64_t seenByKeys = heads * forKeys.rows * rowBytes;
  int64_t seenByQueries = heads * forQueries.rows * rowBytes;
  KernelWork work;
  work.buffers = {{queries + seenByKeys, 0},    {keys + seenByQueries, 0},
                  {keys + seenByQueries, 0},    {sums, 0},
                  {heads * s.seq * 4, 0, true}, {queries + seenByKeys + sums, 0}};
  addMask(s, work);
  for (int64_t bytes : {queries, keys, keys})
    work.buffers.push_back({0, bytes});
  // S, dP, dv and dk of blocks of keys; S, dP and dq of blocks of queries.
  work.flops = 2 * s.headDim * heads * (4 * forKeys.pairs + 3 * forQueries.pairs);
  work.leastFlops = 5 * 2 * s.headDim * visiblePairs(s);
  work.reason = "S and dP are computed for keys and for queries (seven products, not five), from "
                "tiles that each block reads, out of the L2 cache: nothing is summed across blocks";
  return work;
}

} // namespace gradc::codegen::gpu

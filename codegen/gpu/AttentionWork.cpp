// What attention's launches do: the tiles that each block passes over, counted.
#include "codegen/gpu/Attention.h"
#include "codegen/gpu/AttentionBackwardBlock.h"
#include "codegen/kernels/CeilDiv.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir;

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
void addMask(const AttentionSpec &s, std::vector<BufferTraffic> &buffers) {
  constexpr int64_t bytes = 4;
  if (s.documents) {
    for (BufferTraffic &operand : buffers)
      operand.atMost = !operand.cached;
    buffers.push_back({s.batch * s.seq * bytes, 0, true});
  }
  for (int i = s.documents ? 1 : 0; i < s.maskBuffers(); ++i)
    buffers.push_back({bytes, 0, true});
}

/// Of what is asked of the cache, what memory is asked for, the first `operands` buffers having
/// `once` bytes each. Adds to the reason how much more the cache serves.
void setBuffers(KernelWork &work, std::vector<BufferTraffic> asked, ArrayRef<int64_t> once,
                bool fitsCache) {
  KernelWork accesses;
  accesses.buffers = asked;
  for (size_t i = 0; fitsCache && i < once.size(); ++i)
    if (asked[i].read > once[i])
      asked[i] = {once[i], 0, /*cached=*/true};
  work.buffers = std::move(asked);
  work.reason +=
      fitsCache
          ? llvm::formatv("; blocks of a head ask the second-level cache for {0:F1} times the "
                          "bytes, the heads in flight fitting it",
                          static_cast<double>(accesses.bytes()) / static_cast<double>(work.bytes()))
                .str()
          : "; each block reads what it sees of a head that is larger than the second-level cache";
}

int64_t headBytes(const AttentionSpec &s) { return s.seq * s.headDim * row::byteSize(s.dtype); }

Passes passesOf(const AttentionSpec &s, const BackwardRole &role) {
  return role.ofKeys ? passes(s, keySchedule(s), queriesOf) : passes(s, querySchedule(s), keysOf);
}

} // namespace

std::vector<BufferTraffic> attentionForwardAccesses(const AttentionSpec &s) {
  int64_t heads = s.batch * s.heads, once = heads * headBytes(s);
  int64_t seen = heads * passes(s, forwardSchedule(s), keysOf).rows * headBytes(s) / s.seq;
  std::vector<BufferTraffic> buffers = {{once, 0}, {seen, 0}, {seen, 0}};
  addMask(s, buffers);
  buffers.push_back({0, once});
  buffers.push_back({0, heads * s.seq * 4});
  return buffers;
}

KernelWork attentionForwardWork(const AttentionSpec &s) {
  int64_t heads = s.batch * s.heads, queries = heads * headBytes(s), keys = queries / s.group();
  KernelWork work;
  work.flops = 4 * s.headDim * heads * passes(s, forwardSchedule(s), keysOf).pairs;
  work.leastFlops = 4 * s.headDim * visiblePairs(s);
  work.reason = "tiles at the mask's edge are computed whole";
  setBuffers(work, attentionForwardAccesses(s), {queries, keys, keys}, forwardOrder(s).fitsCache);
  return work;
}

std::vector<BufferTraffic> attentionBackwardAccesses(const AttentionSpec &s) {
  int64_t heads = s.batch * s.heads, rowBytes = headBytes(s) / s.seq;
  int64_t queries = heads * headBytes(s), keys = queries / s.group();
  int64_t q = 0, k = 0, v = 0, o = 0, dO = 0;
  for (const BackwardRole &role : backwardRoles(s)) {
    Passes sum = passesOf(s, role);
    int64_t seen = heads * sum.rows * rowBytes;
    // rowsum(dO * O): of all rows of tiles and blocks, those beyond the sequence reading its last.
    // The warps that share a band each compute its rows'.
    AttentionSchedule schedule = role.ofKeys ? keySchedule(s) : querySchedule(s);
    int64_t own = ceilDiv(s.seq, schedule.rows()) * schedule.rows() * schedule.parts;
    int64_t sums = heads * (role.ofKeys ? sum.tiles * schedule.tile : own) * rowBytes;
    q += role.ofKeys ? seen : queries;
    dO += role.ofKeys ? seen : queries;
    k += role.ofKeys ? keys : seen;
    v += !role.ofKeys ? seen : role.makesFirst ? keys : 0;
    o += role.makesFirst ? sums : 0;
  }
  std::vector<BufferTraffic> buffers = {
      {q, 0}, {k, 0}, {v, 0}, {o, 0}, {heads * s.seq * 4, 0, true}, {dO + o, 0}};
  // Where no band's lower half is in the sequence, the compiler sees it and leaves those sums out.
  buffers[3].atMost = buffers[5].atMost = s.seq <= bandRows / 2;
  addMask(s, buffers);
  for (int64_t bytes : {queries, keys, keys})
    buffers.push_back({0, bytes});
  return buffers;
}

KernelWork attentionBackwardWork(const AttentionSpec &s) {
  int64_t heads = s.batch * s.heads, queries = heads * headBytes(s), keys = queries / s.group();
  int64_t lse = heads * s.seq * 4, products = 0;
  KernelWork work;
  for (const BackwardRole &role : backwardRoles(s)) {
    // S, and for each sum its own; dP for the first.
    int64_t made = 1 + (role.makesFirst ? 2 : 0) + (role.makesSecond ? 1 : 0);
    products += made;
    work.flops += made * 2 * s.headDim * heads * passesOf(s, role).pairs;
  }
  work.leastFlops = 5 * 2 * s.headDim * visiblePairs(s);
  work.reason = llvm::formatv("S and dP are computed for keys and for queries ({0} products, not "
                              "5): nothing is summed across blocks",
                              products);
  setBuffers(work, attentionBackwardAccesses(s), {queries, keys, keys, queries, lse, queries},
             backwardOrder(s).fitsCache);
  return work;
}

} // namespace gradc::codegen::gpu

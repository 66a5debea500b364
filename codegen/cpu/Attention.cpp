// Attention's sizes: how its work is split, and what it costs.
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/AttentionTiling.h"
#include "codegen/kernels/CeilDiv.h"

#include <algorithm>

namespace gradc::codegen {

// --- how the work is split

namespace {

constexpr int64_t enoughTasks = 8;
/// Bounds the running maxima and sums, which lie on the stack.
constexpr int64_t maxForwardRows = 8160;

/// Parts of [0, seq), a multiple of `unit` each, so that `items` times them are enough tasks.
int64_t partRows(int64_t seq, int64_t items, int64_t unit) {
  int64_t parts = std::clamp<int64_t>(ceilDiv(enoughTasks, items), 1, ceilDiv(seq, unit));
  return ceilDiv(ceilDiv(seq, parts), unit) * unit;
}

/// Rows that `floats` of scratch hold, in multiples of `unit`, whatever the target's vectors.
int64_t gatheredRows(const AttentionSpec &s, int64_t floats, int64_t unit) {
  constexpr int64_t widestVector = 16;
  int64_t width = roundUp(s.headDim, widestVector);
  return std::max(floats / width / unit, int64_t{1}) * unit;
}

} // namespace

ForwardSplit forwardSplit(const AttentionSpec &s) {
  int64_t rows = partRows(s.seq, s.batch * s.heads, forwardQueryBlock);
  rows = std::min(rows, maxForwardRows);
  if (s.narrow())
    rows = std::min(rows, gatheredRows(s, forwardGathered, forwardQueryBlock));
  return {rows, ceilDiv(s.seq, rows)};
}

BackwardSplit backwardSplit(const AttentionSpec &s) {
  BackwardSplit split{false, s.seq, 1, s.seq, 1};
  int64_t mostKeys = s.narrow() ? gatheredRows(s, backwardGathered / 2, backwardKeyBlock) : s.seq;
  if (s.batch * s.kvHeads >= 4 && s.seq <= mostKeys)
    return split;
  split.apart = true;
  split.keyRows = partRows(s.seq, s.batch * s.kvHeads, backwardKeyBlock);
  if (s.narrow())
    split.keyRows = std::min(split.keyRows, mostKeys);
  split.keyParts = ceilDiv(s.seq, split.keyRows);
  split.queryRows = partRows(s.seq, s.batch * s.heads, queryUnit);
  split.queryParts = ceilDiv(s.seq, split.queryRows);
  return split;
}

int64_t attentionForwardTaskCount(const AttentionSpec &s) {
  return s.batch * s.heads * forwardSplit(s).parts;
}

int64_t attentionBackwardTaskCount(const AttentionSpec &s) {
  BackwardSplit split = backwardSplit(s);
  if (!split.apart)
    return s.batch * s.kvHeads;
  return s.batch * (s.kvHeads * split.keyParts + s.heads * split.queryParts);
}

// --- what it costs

int64_t attentionPairs(const AttentionSpec &s) {
  if (!s.masked())
    return s.seq * s.seq;
  int64_t width = s.window > 0 ? std::min(s.window, s.seq) : s.seq;
  return width * (width + 1) / 2 + (s.seq - width) * width;
}

static int64_t productFlops(const AttentionSpec &s) {
  return 2 * s.batch * s.heads * attentionPairs(s) * s.headDim;
}
int64_t attentionForwardFlops(const AttentionSpec &s) { return 2 * productFlops(s); }
int64_t attentionBackwardFlops(const AttentionSpec &s) { return 5 * productFlops(s); }

/// Bytes of so many tensors of query heads' and of key heads' rows, of lse and of first keys.
static int64_t tensorBytes(const AttentionSpec &s, int64_t ofHeads, int64_t ofKeyHeads) {
  int64_t elements = (ofHeads * s.heads + ofKeyHeads * s.kvHeads) * s.headDim;
  int64_t firstKey = s.documents ? row::byteSize(row::Dtype::i32) : 0;
  return s.batch * s.seq *
         (elements * row::byteSize(s.dtype) + s.heads * row::byteSize(row::Dtype::f32) + firstKey);
}
int64_t attentionForwardBytes(const AttentionSpec &s) { return tensorBytes(s, 2, 2); }
int64_t attentionBackwardBytes(const AttentionSpec &s) { return tensorBytes(s, 4, 4); }

} // namespace gradc::codegen

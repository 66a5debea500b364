// Attention's sizes on GPUs: what can be emitted, and how work is cut into blocks.
#include "codegen/gpu/Attention.h"

#include "codegen/gpu/Tiles.h"
#include "codegen/kernels/CeilDiv.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

namespace gradc::codegen::gpu {

std::string verifyForGpu(const AttentionSpec &s) {
  if (std::string wrong = verify(s); !wrong.empty())
    return wrong;
  if (s.headDim > 128)
    return llvm::formatv("attention on a GPU: expected a head dimension of 128 or less, got: {0}; "
                         "compile with --target cpu",
                         s.headDim);
  return "";
}

int64_t tileColumns(const AttentionSpec &s) {
  constexpr int64_t whole = 16; // of a matrix instruction's depth
  return ceilDiv(s.headDim, whole) * whole;
}

int64_t accessBytes(const AttentionSpec &s) {
  int64_t elements = s.headDim;
  for (const AttentionSpec::Strides *x : {&s.q, &s.k, &s.v, &s.o, &s.dO, &s.dq, &s.dk, &s.dv})
    for (int64_t stride : {x->batch, x->token, x->head})
      elements = std::gcd(elements, stride);
  return std::gcd(elements * row::byteSize(s.dtype), std::gcd(s.alignment, widestAccess));
}

// Of the few tried, those with which ptxas spills nothing (docs/design/gpu.md has what it says).
// Two bands would read a tile from shared memory once for both; with these tiles they spill.

AttentionSchedule forwardSchedule(const AttentionSpec &s) {
  if (!s.narrow())
    return {.bands = 1, .tile = 32, .chunk = 32};
  // What a mask needs takes registers, too, and so do the addresses of many small copies.
  bool needsMore = s.forgets() || s.dropout > 0 || accessBytes(s) < widestAccess;
  int64_t tile = (s.headDim <= 64 ? 64 : 32) / (needsMore ? 2 : 1);
  return {.bands = 1, .tile = tile, .chunk = tile};
}

AttentionSchedule keySchedule(const AttentionSpec &s) {
  if (!s.narrow() || s.headDim > 64)
    return {.bands = 1, .tile = 16, .chunk = 16};
  return {.bands = 1, .tile = 32, .chunk = 16};
}

AttentionSchedule querySchedule(const AttentionSpec &s) {
  if (!s.narrow())
    return {.bands = 1, .tile = 16, .chunk = 16};
  return {.bands = 1, .tile = 32, .chunk = 16};
}

int64_t backwardResidentBlocks(const AttentionSpec &s) {
  return s.narrow() && s.headDim <= 64 ? 2 : 0;
}

int64_t attentionForwardBlocks(const AttentionSpec &s) {
  return s.batch * s.heads * ceilDiv(s.seq, forwardSchedule(s).rows());
}

int64_t attentionBackwardBlocks(const AttentionSpec &s) {
  int64_t ofKeys = s.kvHeads * ceilDiv(s.seq, keySchedule(s).rows());
  int64_t ofQueries = s.heads * ceilDiv(s.seq, querySchedule(s).rows());
  return s.batch * (ofKeys + ofQueries);
}

} // namespace gradc::codegen::gpu

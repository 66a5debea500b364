// Attention's sizes on GPUs: what can be emitted, and how work is cut into blocks.
#include "codegen/gpu/Attention.h"

#include "codegen/gpu/Processor.h"
#include "codegen/gpu/Tiles.h"
#include "codegen/kernels/CeilDiv.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

namespace gradc::codegen::gpu {

/// Of a row, the sums that a thread's registers hold.
static constexpr int64_t mostColumns = 128;
static int64_t columnParts(const AttentionSpec &s) { return s.headDim > mostColumns ? 2 : 1; }

std::string verifyForGpu(const AttentionSpec &s) {
  if (std::string wrong = verify(s); !wrong.empty())
    return wrong;
  if (s.headDim > 256)
    return llvm::formatv("attention on a GPU: expected a head dimension of 256 or less, got: {0}; "
                         "compile with --target cpu",
                         s.headDim);
  return "";
}

int64_t tileColumns(const AttentionSpec &s) {
  int64_t whole = 16 * columnParts(s); // of a matrix instruction's depth
  return ceilDiv(s.headDim, whole) * whole;
}

int64_t pieceBytes(const AttentionSpec &s) {
  int64_t elements = s.headDim;
  for (const AttentionSpec::Strides *x : {&s.q, &s.k, &s.v, &s.o, &s.dO, &s.dq, &s.dk, &s.dv})
    for (int64_t stride : {x->batch, x->token, x->head})
      elements = std::gcd(elements, stride);
  return std::gcd(elements * row::byteSize(s.dtype), std::gcd(s.alignment, widestAccess));
}

// Of the few tried, those with which ptxas spills nothing (docs/design/gpu.md has what it says) and
// which leave a block within mostSharedBytes, static memory and all. Two bands would read a tile
// from shared memory once for both; with these tiles they spill.

namespace {

/// Bytes of both stages' statistics of rows, at most.
constexpr int64_t statisticsBytes = 1024;

/// Warps whose own rows leave room for two stages of two tiles.
int64_t warpsBeside(const AttentionSpec &s, int64_t ownMatrices, int64_t tile, int64_t room) {
  TileLayout layout{tileColumns(s), s.dtype};
  int64_t warps = 4;
  while (warps > 1 && layout.bytes(ownMatrices * warps * bandRows + 4 * tile) > room)
    warps /= 2;
  return warps;
}

AttentionSchedule backwardSchedule(const AttentionSpec &s, int64_t tile) {
  // Both kinds of blocks are of one launch and have as many warps.
  constexpr int64_t least = 16, room = mostSharedBytes - staticSharedBytes - statisticsBytes;
  int64_t warps = warpsBeside(s, /*ownMatrices=*/2, least, room);
  return {.warps = warps, .parts = columnParts(s), .bands = 1, .tile = tile, .chunk = 16};
}

} // namespace

AttentionSchedule forwardSchedule(const AttentionSpec &s) {
  int64_t tile = s.headDim <= (s.narrow() ? mostColumns : 64) ? 32 : 16;
  if (s.narrow()) {
    // What a mask needs takes registers, too, and so do the addresses of many small copies.
    bool needsMore = s.forgets() || s.dropout > 0 || pieceBytes(s) < widestAccess;
    tile = std::max<int64_t>((s.headDim <= 64 ? 64 : tile) / (needsMore ? 2 : 1), 16);
  }
  int64_t warps = warpsBeside(s, /*ownMatrices=*/1, tile, mostSharedBytes - staticSharedBytes);
  return {.warps = warps, .parts = columnParts(s), .bands = 1, .tile = tile, .chunk = tile};
}

AttentionSchedule keySchedule(const AttentionSpec &s) {
  return backwardSchedule(s, s.narrow() && s.headDim <= 64 ? 32 : 16);
}

AttentionSchedule querySchedule(const AttentionSpec &s) {
  return backwardSchedule(s, s.narrow() && s.headDim <= 128 ? 32 : 16);
}

bool splitsKeyGradients(const AttentionSpec &s) { return columnParts(s) > 1; }

RegisterRequest forwardRegisters(const AttentionSpec &s, const GpuTarget &target) {
  if (!s.narrow())
    return {.blocks = 1};
  if (s.headDim > 64)
    return {.blocks = s.dropout > 0 ? 1 : 0};
  // Three blocks either way; the rest of the registers makes the assembler spill a word.
  bool isPlain = !s.forgets() && s.dropout == 0;
  return {.registers = !isPlain ? 0 : target.capability == 90 ? 168 : 160};
}

RegisterRequest backwardRegisters(const AttentionSpec &s) {
  if (!s.narrow())
    return {.blocks = 1};
  // Two blocks either way; with all 255 registers heads of 128 spill some words.
  if (s.headDim > 64 && s.headDim <= 128)
    return {.registers = 248};
  return {.blocks = 2};
}

} // namespace gradc::codegen::gpu

// The order of attention's blocks: which heads' blocks run side by side, so that what they read
// again is still in the second-level cache.
#include "codegen/gpu/Attention.h"
#include "codegen/gpu/AttentionBackwardBlock.h"
#include "codegen/gpu/Processor.h"
#include "codegen/kernels/CeilDiv.h"

namespace gradc::codegen::gpu {

namespace {

/// Of a key head and its query heads.
struct PerKeyHead {
  int64_t blocks, bytes; ///< bytes: what the blocks read
};

AttentionOrder orderOf(const AttentionSpec &s, const PerKeyHead &head, int64_t inFlight) {
  int64_t heads = s.batch * s.kvHeads;
  for (int64_t ofGroup = heads; ofGroup > 0; --ofGroup) {
    if (heads % ofGroup != 0)
      continue;
    int64_t blocks = ofGroup * head.blocks;
    // Those of one group may have begun before all of the group before have ended.
    int64_t groups = std::min(heads / ofGroup, ceilDiv(inFlight, blocks) + 1);
    if (groups * ofGroup * head.bytes <= secondLevelCacheBytes)
      return {ofGroup, /*fitsCache=*/true};
  }
  return {1, /*fitsCache=*/false};
}

int64_t blocksInFlight(int64_t sharedBytes, int64_t threads) {
  return processorsOfGpu *
         residentBlocks(sharedBytes, threads, sharedBytesOfProcessor(GpuTarget{80}));
}

} // namespace

AttentionOrder forwardOrder(const AttentionSpec &s) {
  AttentionSchedule schedule = forwardSchedule(s);
  int64_t matrix = s.seq * s.headDim * row::byteSize(s.dtype);
  PerKeyHead head{s.group() * ceilDiv(s.seq, schedule.rows()), (2 + s.group()) * matrix};
  return orderOf(s, head, blocksInFlight(forwardSharedBytes(s), schedule.threads()));
}

AttentionOrder backwardOrder(const AttentionSpec &s) {
  int64_t matrix = s.seq * s.headDim * row::byteSize(s.dtype), statistics = s.seq * 4;
  PerKeyHead head{backwardBlocksOfKeyHead(s), 2 * matrix + s.group() * (3 * matrix + statistics)};
  return orderOf(s, head, blocksInFlight(backwardSharedBytes(s), keySchedule(s).threads()));
}

int64_t attentionForwardBlocks(const AttentionSpec &s) {
  return s.batch * s.heads * ceilDiv(s.seq, forwardSchedule(s).rows());
}

int64_t attentionBackwardBlocks(const AttentionSpec &s) {
  return s.batch * s.kvHeads * backwardBlocksOfKeyHead(s);
}

} // namespace gradc::codegen::gpu

// Block sizes of the attention kernels and how their work is split into tasks; used by their
// emitters only.
#pragma once

#include "codegen/cpu/Attention.h"
#include "codegen/cpu/Microkernel.h"
#include "codegen/kernels/CeilDiv.h"

namespace gradc::codegen {

/// Query rows that every tile height (6, 8, 12) and every vector width divides.
inline constexpr int64_t queryUnit = 48;
inline constexpr int64_t forwardQueryBlock = queryUnit;
inline constexpr int64_t backwardQueryBlock = 4 * queryUnit;
inline constexpr int64_t backwardKeyBlock = 64;

/// Floats of scratch in which a task gathers results whose elements are narrow: rounded once, they
/// cannot be carried in the output as those of f32 are.
inline constexpr int64_t forwardGathered = 65536;
inline constexpr int64_t backwardGathered = 524288;

/// Forward: a task owns `rows` query rows of one head; parts are per head.
struct ForwardSplit {
  int64_t rows, parts;
};
ForwardSplit forwardSplit(const AttentionSpec &spec);

/// Backward: a task owns one key head with the query heads that read it. Where those are too few to
/// share out, or a head's gathered dk and dv too large for scratch, dk/dv and dq are computed apart
/// (seven products instead of five): first tasks that own `keyRows` keys of one key head, then
/// tasks that own `queryRows` queries of one query head.
struct BackwardSplit {
  bool apart = false;
  int64_t keyRows = 0, keyParts = 0; ///< not apart: all rows, one part
  int64_t queryRows = 0, queryParts = 0;
};
BackwardSplit backwardSplit(const AttentionSpec &spec);

/// Sizes that follow from the head dimension and the machine.
struct AttentionTiling {
  int64_t headDim;
  int64_t width; ///< head dimension padded to whole vectors: row stride of packed operands
  int64_t depth; ///< head dimension padded to the tiles' unit of depth
  int64_t panel; ///< keys in one panel of a transposed operand, [depth][panel]

  AttentionTiling(const AttentionSpec &spec, const CpuTarget &target)
      : headDim(spec.headDim), width(roundUp(spec.headDim, target.f32Lanes())),
        depth(roundUp(spec.headDim, tileDepthUnit)),
        panel(maxTileVectors(target) * target.f32Lanes()) {}

  /// `most` rows, or fewer so that `operands` packed operands of so many rows stay within `floats`;
  /// a multiple of `unit`, at least one.
  int64_t rowsWithin(int64_t floats, int64_t operands, int64_t unit, int64_t most) const {
    int64_t rows = floats / (operands * width) / unit * unit;
    return rows < unit ? unit : rows > most ? most : rows;
  }
};

} // namespace gradc::codegen

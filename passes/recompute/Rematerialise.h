// Computes again, in front of the first op of the backward that reads them, what was not kept.
#pragma once

#include "passes/recompute/ForwardGraph.h"

namespace gradc::recompute {

/// Marks the second copy of an op: its FLOPs are not the model's.
inline constexpr llvm::StringLiteral recomputedAttr = "nn.recomputed";

/// Rewrites the function of `graph` so that its backward reads forward values that are in `kept`,
/// persistent, or statistics, and second copies of all others. The copies read kept values through
/// nn.after. `graph` is of no use afterwards.
void rematerialise(const ForwardGraph &graph, const ValueSet &kept);

} // namespace gradc::recompute

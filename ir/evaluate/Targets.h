// What the losses' reference values ask of their targets.
#pragma once

#include "ir/Nn.h"

namespace gradc::nn {

/// Reports a target beyond the last column; negative ones mark rows without a label.
inline llvm::LogicalResult checkTargets(mlir::Operation *op, const HostTensor &targets,
                                        int64_t columns) {
  for (int64_t r = 0; r < targets.size(); ++r)
    if (targets[r] >= static_cast<double>(columns))
      return op->emitOpError("expected targets below ")
             << columns << ", got: " << static_cast<int64_t>(targets[r]) << " at row " << r;
  return llvm::success();
}

} // namespace gradc::nn

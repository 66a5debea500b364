// Parameters that are computed with in a narrow type: the f32 master weights stay in the
// optimizer's hands, and a rounded copy is state of its own that the optimizer's kernel writes.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

struct LowCopy {
  unsigned parameter; ///< its number among the parameters
  mlir::RankedTensorType type;
};

/// Turns what functions with the same first arguments, `parameters` of them, cast parameters to
/// into arguments behind the parameters; returns these, in order. Every function gets all of them.
llvm::SmallVector<LowCopy> separateLowCopies(llvm::ArrayRef<mlir::func::FuncOp> functions,
                                             unsigned parameters);

} // namespace gradc

// Parameters that are computed with in a narrow type: the f32 master weights stay in the
// optimizer's hands, and what the graph makes of each, a rounded copy or fp8 numbers and their
// scale, is state of its own, made again when the parameter has changed.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

struct LowCopy {
  unsigned parameter; ///< its number among the parameters
  mlir::RankedTensorType type;

  /// What tells the copies of a parameter apart: nothing of a cast, fp8 or fp8_scale.
  llvm::StringRef part() const;
  bool operator==(const LowCopy &) const = default;
};

struct LowCopies {
  llvm::SmallVector<LowCopy> list;
  /// From the parameters to the copies, in order: a function beside the others, the caller's to
  /// erase.
  mlir::func::FuncOp make;
};

/// Turns what functions with the same first arguments, `parameters` of them, make of one parameter
/// alone into arguments behind the parameters: casts, fp8 numbers and scales. Every function gets
/// all of them.
LowCopies separateLowCopies(llvm::ArrayRef<mlir::func::FuncOp> functions, unsigned parameters);

} // namespace gradc

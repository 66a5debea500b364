// Parameters that are computed with in a narrow type: the f32 master weights stay in the
// optimizer's hands, and what the graph makes of each, a rounded copy or fp8 numbers and their
// scale, is state of its own, made again when the parameter has changed.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

struct LowCopy {
  unsigned parameter; ///< its number among the parameters
  /// What tells the copies of a parameter apart (LowCopyOpInterface). One of each is kept as state;
  /// what else the graph makes of the parameter stays in the graph.
  llvm::StringRef part;
  mlir::RankedTensorType type;
  mlir::Type format; ///< of fp8 numbers and their scale

  bool operator==(const LowCopy &) const = default;
};

struct LowCopies {
  llvm::SmallVector<LowCopy> list;
  /// From the parameters to the copies, in order: a function beside the others, the caller's to
  /// erase.
  mlir::func::FuncOp make;
};

/// Whether the op makes a copy of a parameter, or is on the way to one, as LowCopyOpInterface
/// tells. `isParameter` says what is a parameter.
bool makesLowCopy(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> isParameter);

/// Turns what functions with the same first arguments, `parameters` of them, make of one parameter
/// alone into arguments behind the parameters: its cast, fp8 numbers and their scale. Every
/// function gets all of them.
LowCopies separateLowCopies(llvm::ArrayRef<mlir::func::FuncOp> functions, unsigned parameters);

} // namespace gradc

// Counted loops with values carried from one iteration to the next.
#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace gradc::codegen {

/// for (i = first; i < last; i += step): `body` gets i and the carried values, which it replaces by
/// those of the next iteration; `carried` is left holding the values after the loop.
void emitLoop(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value first, mlir::Value last,
              mlir::Value step, llvm::SmallVectorImpl<mlir::Value> &carried,
              llvm::function_ref<void(mlir::Value, llvm::SmallVectorImpl<mlir::Value> &)> body);

} // namespace gradc::codegen

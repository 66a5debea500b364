// The small kernels that finish what row programs and norms leave in parts. All have the signature
// of GradcKernelFn and a fixed order of summation.
#pragma once

#include "codegen/cpu/Target.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

/// Columns that one task of fold_rows handles.
inline constexpr int64_t foldColumnsPerTask = 256;

/// Buffers {partials f32 [extent, columns], out f32 [columns]}: out[c] is the sum of the rows of
/// partials in their order. Tasks: ceil(columns / foldColumnsPerTask).
mlir::func::FuncOp emitFoldRows(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                llvm::StringRef name, int64_t columns, const CpuTarget &target);

/// Buffers {x f32 [extent], partials f32 [tasks]}: partials[task] is the sum of the squares of the
/// elements of a task. Tasks: ceil(extent / row::flatElementsPerTask).
mlir::func::FuncOp emitChunkSquareSums(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                       llvm::StringRef name, const CpuTarget &target);

/// Buffers {x f32 [extent], out f32 [1]}: the sum of x, added up in f64. One task.
mlir::func::FuncOp emitFoldAll(mlir::OpBuilder &builder, mlir::ModuleOp module,
                               llvm::StringRef name, const CpuTarget &target);

} // namespace gradc::codegen

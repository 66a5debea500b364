// The small kernels that finish what row programs and norms leave in parts, as
// codegen/cpu/FoldRows.h has them: the same buffers, each sum in an order that its extent alone
// fixes.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// Columns that one block of fold_rows adds up.
inline constexpr int64_t foldColumnsPerTask = warpThreads;

/// Buffers {partials f32 [extent, columns], out f32 [columns]}: out[c] is the sum of column c.
/// Tasks: ceil(columns / foldColumnsPerTask).
mlir::LLVM::LLVMFuncOp emitFoldRows(mlir::ModuleOp module, llvm::StringRef name, int64_t columns,
                                    const GpuTarget &target);

/// Buffers {x f32 [extent], partials f32 [tasks]}: partials[task] is the sum of the squares of the
/// elements of a task. Tasks: ceil(extent / row::flatElementsPerTask). x begins at a multiple of
/// `alignment` bytes.
mlir::LLVM::LLVMFuncOp emitChunkSquareSums(mlir::ModuleOp module, llvm::StringRef name,
                                           const GpuTarget &target,
                                           int64_t alignment = widestAccess);

/// Buffers {x f32 [extent], out f32 [1]}: the sum of x, added up in f64. One task. x begins at a
/// multiple of `alignment` bytes.
mlir::LLVM::LLVMFuncOp emitFoldAll(mlir::ModuleOp module, llvm::StringRef name,
                                   const GpuTarget &target, int64_t alignment = widestAccess);

/// What a launch of any of them does that adds up `elements` f32 to `sums`, in `flopsEach`
/// operations an element.
KernelWork sumWork(int64_t elements, int64_t sums, int64_t flopsEach);

} // namespace gradc::codegen::gpu

// The shell of a kernel: a function with the signature of GradcKernelFn that hands its buffers to
// an internal function as separate arguments, where each can be declared free of aliases.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

/// What the body of a kernel is given.
struct KernelArguments {
  llvm::SmallVector<mlir::Value> buffers; ///< pointers
  mlir::Value extent, task;               ///< i64
};

/// Appends `name` to `module`; `emitBody` prints its body, without the return. `noAlias` says of
/// each buffer whether nothing else that the kernel touches overlaps it.
mlir::func::FuncOp emitKernelFunction(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                      llvm::StringRef name, llvm::ArrayRef<bool> noAlias,
                                      llvm::function_ref<void(const KernelArguments &)> emitBody);

} // namespace gradc::codegen

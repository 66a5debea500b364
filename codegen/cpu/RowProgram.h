// Prints row programs (ir/row/RowProgram.h) as kernels for the CPU.
//
// A kernel is one function with the signature of GradcKernelFn (runtime/Abi.h): the array of buffer
// addresses in the program's order, the number of rows (elements, where flat), and the task. A task
// handles `rowsPerTask` rows (`flatElementsPerTask` elements), cut at the extent; tasks are
// independent and may run in any order on any thread.
//
// Every order of evaluation is printed, none left to LLVM, so that the bits of a result depend on
// the program, the target and the extent alone. Matrix buffers may overlap as `mayAlias` allows;
// all other buffers must be distinct from each other and from the matrices.
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/row/RowProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

/// Appends the kernel `name` to `module`. Expects a program that row::verify accepts.
mlir::func::FuncOp emitRowProgram(mlir::OpBuilder &builder, mlir::ModuleOp module,
                                  const row::Program &program, llvm::StringRef name,
                                  const CpuTarget &target);

} // namespace gradc::codegen

// Prints row programs (ir/row/RowProgram.h) as kernels for a GPU: the nodes' arithmetic is that of
// all targets (codegen/kernels), the loops are laid over threads by a RowSchedule.
//
// Sums go over a thread's vectors, over a warp's threads by exchanges, over a team's warps through
// shared memory, and where sums of columns go over a block's teams, again through shared memory:
// each in an order that the schedule fixes, so that the bits of a result depend on the program, on
// what its buffers are aligned to (which decides the vectors) and on the extent alone. No atomics.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/gpu/RowSchedule.h"
#include "codegen/kernels/RowWork.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// What kernels of a schedule do once for all loops of a row.
RowReuse reuseOf(const row::Program &program, const RowSchedule &schedule);

/// Appends the kernel `name` to `module`; its blocks are scheduleRows(…).threads() threads and
/// taskCount of them run. Expects a program that row::verify accepts. Matrix buffers may overlap as
/// row::mayAlias allows; all other buffers are distinct. `alignments` as scheduleRows takes them.
mlir::LLVM::LLVMFuncOp emitRowProgram(mlir::ModuleOp module, llvm::StringRef name,
                                      const row::Program &program, const GpuTarget &target,
                                      const Alignments &alignments = {});

} // namespace gradc::codegen::gpu

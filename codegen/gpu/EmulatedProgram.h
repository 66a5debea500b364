// The kernels of a whole program, for an executable that emulates a GPU.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/gpu/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace gradc::codegen::gpu {

/// Adds to `object`, under the name of each exec.kernel of `program`, a constant GradcGpuKernel
/// (runtime/Abi.h) whose kernel is the code for `target`, emulated on `host`. `object` is linked
/// with the library gradc_emulator.
llvm::Error addEmulatedKernels(mlir::ModuleOp program, const GpuTarget &target,
                               const CpuTarget &host, llvm::Module &object);

} // namespace gradc::codegen::gpu

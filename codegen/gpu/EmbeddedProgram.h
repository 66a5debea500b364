// The kernels of a whole program, for an executable that runs on a GPU.
#pragma once

#include "codegen/gpu/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace gradc::codegen::gpu {

/// Adds to `object`, under the name of each exec.kernel of `program`, a constant GradcGpuKernel
/// (runtime/Abi.h), and under imagesSymbol their code: PTX, which a driver assembles for GPUs from
/// `target` on, and a cubin for `target` where this machine has an assembler. Explains in `program`
/// what it added. `object` is linked with the library gradc_cuda.
llvm::Error addEmbeddedKernels(mlir::ModuleOp program, const GpuTarget &target,
                               llvm::Module &object);

} // namespace gradc::codegen::gpu

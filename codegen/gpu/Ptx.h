// From a module of GPU kernels to PTX text, by LLVM's own backend: no CUDA toolkit is needed.
#pragma once

#include "codegen/gpu/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace gradc::codegen::gpu {

/// Makes the dialects that GPU kernels are written in known to a context: those of
/// loadKernelDialects, and nvvm.
void loadGpuDialects(mlir::MLIRContext &context);

/// Lowers `module` (in place) to optimised LLVM IR for nvptx64-nvidia-cuda. What PTX is printed
/// from, and what an emulator may run.
llvm::Expected<std::unique_ptr<llvm::Module>>
lowerToNvptxIr(mlir::ModuleOp module, const GpuTarget &target, llvm::LLVMContext &context);

/// PTX text of a module that lowerToNvptxIr made, which must not be used afterwards.
llvm::Expected<std::string> emitPtx(llvm::Module &module, const GpuTarget &target);

} // namespace gradc::codegen::gpu

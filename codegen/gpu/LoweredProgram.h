// The kernels of a whole program on their way into an executable, emulated or not.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "ir/Exec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace gradc::codegen::gpu {

/// What a GradcGpuKernel says, by the kernel's name, and the code.
struct LoweredProgram {
  std::unique_ptr<llvm::Module> module; ///< what lowerToNvptxIr gives
  llvm::StringMap<int64_t> threads, sharedBytes;
};

/// Lowers every exec.kernel of `program`. The module may get a diagnostic besides the error.
llvm::Expected<LoweredProgram> lowerProgram(mlir::ModuleOp program, const GpuTarget &target,
                                            llvm::LLVMContext &context);

/// Adds to `object`, under the kernel's name, a constant GradcGpuKernel (runtime/Abi.h). `emulated`
/// is the kernel's GradcEmulatedKernel, null where there is none.
void addKernelDescriptor(exec::KernelOp kernel, const LoweredProgram &lowered,
                         llvm::Constant *emulated, llvm::Module &object);

} // namespace gradc::codegen::gpu

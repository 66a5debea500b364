// The step program: exec commands as calls into the runtime's ABI (runtime/Abi.h).
#pragma once

#include "ir/Exec.h"
#include "llvm/ADT/StringRef.h"

namespace llvm {
class Module;
} // namespace llvm

namespace gradc::codegen {

/// The constant of a GPU's code.
inline constexpr llvm::StringLiteral imagesSymbol = "gradc.images";

/// Adds to `target`, which holds under the kernels' symbols functions or, for a GPU, constants of
/// type GradcGpuKernel, a function for each exec.program
/// of `module`, the descriptors it passes, the constant data of gradc.plan, `metadata` in the
/// section .gradc.metadata, and the symbol gradc_executable that leads to them all. `device` names
/// the GradcDeviceKind that they run on. Where `target` has a GradcImages under imagesSymbol the
/// executable has it too.
void emitStepProgram(mlir::ModuleOp module, llvm::StringRef metadata, llvm::StringRef device,
                     llvm::Module &target);

} // namespace gradc::codegen

// The way of kernels to optimised LLVM IR that all targets share. A module of kernels may use func,
// scf, cf, arith, vector and llvm, and what a target adds.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace llvm {
class LLVMContext;
class Module;
class TargetMachine;
} // namespace llvm

namespace gradc::codegen {

/// Makes the dialects that kernels are written in known to a context, and their translations.
void loadKernelDialects(mlir::MLIRContext &context);

/// Lowers `module` to the llvm dialect, in place, and translates it.
llvm::Expected<std::unique_ptr<llvm::Module>> translateKernels(mlir::ModuleOp module,
                                                               llvm::LLVMContext &context);

/// LLVM's passes of -O3. The module's triple, data layout and functions' features are set before.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace gradc::codegen

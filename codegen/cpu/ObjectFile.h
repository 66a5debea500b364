// From a module of kernels to machine code: MLIR's dialects to LLVM's, LLVM's optimiser, an ELF
// object. The module may use func, scf, cf, arith, vector and llvm.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/kernels/LlvmIr.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gradc::codegen {

/// Writes position-independent code for `target` to the file `path`; of the module only what is
/// optimised already, or needs no optimiser: data, and functions that only call. An error says what
/// failed and names the file where that is what failed.
llvm::Error writeObjectFile(llvm::Module &module, const CpuTarget &target, const std::string &path);

/// Lowers `module` (in place) to optimised LLVM IR with the target's attributes set.
llvm::Expected<std::unique_ptr<llvm::Module>>
lowerToLlvmIr(mlir::ModuleOp module, const CpuTarget &target, llvm::LLVMContext &context);

} // namespace gradc::codegen

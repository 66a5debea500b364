// See CpuBackend.h.
#include "codegen/cpu/CpuBackend.h"
#include "codegen/cpu/ObjectFile.h"

#include "llvm/IR/Module.h"

using namespace mlir;

namespace gradc::codegen {

llvm::Expected<std::unique_ptr<llvm::Module>>
CpuBackend::lowerKernels(ModuleOp planned, llvm::LLVMContext &context) const {
  auto kernels = emitKernels(planned, target);
  if (failed(kernels))
    return llvm::createStringError("kernels cannot be emitted");
  return lowerToLlvmIr(**kernels, target, context);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
CpuBackend::hostModule(ModuleOp planned, llvm::LLVMContext &context) const {
  return lowerKernels(planned, context);
}

llvm::Expected<std::string> CpuBackend::assembly(ModuleOp) const {
  return llvm::createStringError("--emit ptx needs --target cuda:sm_80 or another GPU");
}

llvm::Expected<std::string> CpuBackend::machineCode(ModuleOp) const {
  return llvm::createStringError("--emit cubin needs --target cuda:sm_80 or another GPU");
}

} // namespace gradc::codegen

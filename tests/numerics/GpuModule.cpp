// Kernels of tests, as PTX.
#include "tests/numerics/GpuModule.h"

#include "codegen/gpu/Ptx.h"

#include "mlir/IR/Verifier.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

namespace gradc::codegen::gpu {

GpuModule::GpuModule() : context(mlir::MLIRContext::Threading::DISABLED) {
  loadGpuDialects(context);
  module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
}

std::string GpuModule::toPtx(const GpuTarget &target) {
  EXPECT_TRUE(mlir::succeeded(mlir::verify(*module)));
  llvm::LLVMContext llvmContext;
  auto lowered = lowerToNvptxIr(*module, target, llvmContext);
  if (!lowered) {
    ADD_FAILURE() << llvm::toString(lowered.takeError());
    return "";
  }
  auto ptx = emitPtx(**lowered, target);
  if (!ptx) {
    ADD_FAILURE() << llvm::toString(ptx.takeError());
    return "";
  }
  return *ptx;
}

} // namespace gradc::codegen::gpu

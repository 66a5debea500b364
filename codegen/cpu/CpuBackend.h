// The backend of --target cpu: kernels are functions of the object file.
#pragma once

#include "codegen/Backend.h"
#include "codegen/cpu/KernelFamilies.h"

namespace gradc::codegen {

class CpuBackend final : public Backend {
public:
  /// `times` as CpuKernelLibrary has it.
  CpuBackend(CpuTarget target, Products products, ProductTimes *times)
      : target(target), library(std::move(target), products, times) {}

  const KernelLibrary &kernels() const override { return library; }
  DeviceRuntime runtime() const override { return {"gradc_cpu_device", {"-ldnnl", "-lgomp"}}; }
  CpuTarget host() const override { return target; }
  llvm::Expected<std::unique_ptr<llvm::Module>>
  lowerKernels(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::unique_ptr<llvm::Module>>
  hostModule(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::string> assembly(mlir::ModuleOp) const override;
  llvm::Expected<std::string> machineCode(mlir::ModuleOp) const override;

private:
  CpuTarget target;
  CpuKernelLibrary library;
};

} // namespace gradc::codegen

// The backend of --target cuda:ARCH: kernels for an NVIDIA GPU and, with --emulate, the same
// kernels for the host's emulator.
#pragma once

#include "codegen/Backend.h"
#include "codegen/cpu/Target.h"
#include "codegen/gpu/KernelFamilies.h"

namespace gradc::codegen::gpu {

class GpuBackend final : public Backend {
public:
  /// `host` is the machine that executables are linked for, and emulate kernels on.
  GpuBackend(GpuTarget target, CpuTarget host)
      : target(target), host(std::move(host)), library(target) {}

  const KernelLibrary &kernels() const override { return library; }
  DeviceRuntime runtime() const override {
    // Boost.Context is linked in: where an executable runs, nothing need be installed for it.
    return {"gradc_emulated_device", {"libgradc_emulator.a", "-l:libboost_context.a"}};
  }
  llvm::Expected<std::unique_ptr<llvm::Module>>
  lowerKernels(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::unique_ptr<llvm::Module>>
  hostModule(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::string> assembly(mlir::ModuleOp planned) const override;
  llvm::Expected<std::string> machineCode(mlir::ModuleOp planned) const override;

private:
  GpuTarget target;
  CpuTarget host;
  GpuKernels library;
};

} // namespace gradc::codegen::gpu

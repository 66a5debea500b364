// The backend of --target cuda:ARCH: kernels for an NVIDIA GPU or, with --emulate, the same
// kernels for the host's emulator.
#pragma once

#include "codegen/Backend.h"
#include "codegen/cpu/Target.h"
#include "codegen/gpu/KernelFamilies.h"

namespace gradc::codegen::gpu {

class GpuBackend final : public Backend {
public:
  /// `machine` is what emulated kernels run on.
  GpuBackend(GpuTarget target, CpuTarget machine, bool emulates)
      : target(target), machine(std::move(machine)), emulates(emulates), library(target) {}

  const KernelLibrary &kernels() const override { return library; }
  DeviceRuntime runtime() const override;
  /// Executables with the kernels inside are taken to the machine that has the GPU.
  CpuTarget host() const override { return emulates ? machine : CpuTarget::baseline(); }
  llvm::Expected<std::unique_ptr<llvm::Module>>
  lowerKernels(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::unique_ptr<llvm::Module>>
  hostModule(mlir::ModuleOp planned, llvm::LLVMContext &context) const override;
  llvm::Expected<std::string> assembly(mlir::ModuleOp planned) const override;
  llvm::Expected<std::string> machineCode(mlir::ModuleOp planned) const override;

private:
  GpuTarget target;
  CpuTarget machine;
  bool emulates;
  GpuKernels library;
};

} // namespace gradc::codegen::gpu

// Retargets, loads and runs GPU kernels.
#include "tests/numerics/EmulatedKernels.h"

#include "codegen/cpu/Target.h"
#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Emulate.h"
#include "codegen/gpu/Ptx.h"
#include "tests/numerics/KernelCache.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace gradc::codegen::gpu {

namespace {

/// Fails the current test, and gives nothing, where something goes wrong.
std::optional<LoadedModule> load(mlir::ModuleOp module, const GpuTarget &target) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto lowered = lowerToNvptxIr(module, target, *context);
  llvm::Error error = lowered ? emulateKernels(**lowered, CpuTarget::host()) : lowered.takeError();
  if (!error)
    return LoadedModule(std::move(*lowered), std::move(context));
  ADD_FAILURE() << llvm::toString(std::move(error));
  return std::nullopt;
}

} // namespace

EmulatedKernels::EmulatedKernels(GpuModule &module, const GpuTarget &target) {
  EXPECT_TRUE(mlir::succeeded(mlir::verify(module.get())));
  for (auto kernel : module.get().getOps<mlir::LLVM::LLVMFuncOp>())
    if (auto required = kernel->getAttrOfType<mlir::DenseI32ArrayAttr>(
            mlir::NVVM::NVVMDialect::getReqntidAttrName())) {
      threads[kernel.getSymName().str()] = required[0];
      sharedBytes[kernel.getSymName().str()] = sharedBytesOf(kernel);
    }
  static KernelCache<LoadedModule> cache;
  std::string text = target.name() + "\n";
  llvm::raw_string_ostream out(text);
  module.get()->print(out, mlir::OpPrintingFlags().assumeVerified());
  loaded = cache.get(text, [&] { return load(module.get(), target); });
}

rt::Status EmulatedKernels::launch(const std::string &kernel,
                                   const std::vector<rt::EmulatedBuffer> &buffers, int64_t extent,
                                   int64_t tasks, rt::WarpOrder order,
                                   const std::vector<rt::EmulatedPart> &parts) const {
  const GradcEmulatedKernel *function = loaded->kernel(kernel);
  if (!function)
    return rt::Status::defect("no kernel was loaded");
  rt::EmulatedLaunch launch{
      kernel.c_str(), function, threads.at(kernel), sharedBytes.at(kernel), tasks, extent,
      buffers,        parts};
  rt::Emulator emulator(order);
  rt::Status status = emulator.run(launch);
  seen = emulator.traffic();
  return status;
}

void EmulatedKernels::run(const std::string &kernel, const std::vector<rt::EmulatedBuffer> &buffers,
                          int64_t extent, int64_t tasks, rt::WarpOrder order) const {
  rt::Status status = launch(kernel, buffers, extent, tasks, order);
  EXPECT_TRUE(status.ok()) << status.message();
}

} // namespace gradc::codegen::gpu

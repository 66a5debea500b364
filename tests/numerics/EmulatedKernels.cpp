// Retargets, loads and runs GPU kernels.
#include "tests/numerics/EmulatedKernels.h"

#include "codegen/cpu/Target.h"
#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Emulate.h"
#include "codegen/gpu/Ptx.h"
#include "runtime/emulator/Functions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>

namespace gradc::codegen::gpu {

namespace {

llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> load(mlir::ModuleOp module,
                                                       const GpuTarget &target) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto context = std::make_unique<llvm::LLVMContext>();
  auto lowered = lowerToNvptxIr(module, target, *context);
  if (!lowered)
    return lowered.takeError();
  if (llvm::Error error = emulateKernels(**lowered, CpuTarget::host()))
    return error;
  auto machine = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!machine)
    return machine.takeError();
  machine->setCodeGenOptLevel(llvm::CodeGenOptLevel::Less); // most of the time is the emulator's
  auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(*machine)).create();
  if (!jit)
    return jit.takeError();
  llvm::orc::SymbolMap symbols;
  for (const rt::emulator::Symbol &symbol : rt::emulator::symbols())
    symbols[(*jit)->mangleAndIntern(symbol.name)] = {
        llvm::orc::ExecutorAddr::fromPtr(symbol.address), llvm::JITSymbolFlags::Exported};
  if (llvm::Error error =
          (*jit)->getMainJITDylib().define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  llvm::orc::ThreadSafeModule loaded(std::move(*lowered), std::move(context));
  if (llvm::Error error = (*jit)->addIRModule(std::move(loaded)))
    return error;
  return jit;
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
  auto loaded = load(module.get(), target);
  if (loaded)
    jit = std::move(*loaded);
  else
    ADD_FAILURE() << llvm::toString(loaded.takeError());
}

EmulatedKernels::~EmulatedKernels() = default;

rt::Status EmulatedKernels::launch(const std::string &kernel,
                                   const std::vector<rt::EmulatedBuffer> &buffers, int64_t extent,
                                   int64_t tasks, rt::WarpOrder order,
                                   const std::vector<rt::EmulatedPart> &parts) const {
  auto symbol = jit->lookup(kernel);
  if (!symbol)
    return rt::Status::defect(llvm::toString(symbol.takeError()));
  rt::EmulatedLaunch launch{kernel.c_str(),
                            symbol->toPtr<const GradcEmulatedKernel *>(),
                            threads.at(kernel),
                            sharedBytes.at(kernel),
                            tasks,
                            extent,
                            buffers,
                            parts};
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

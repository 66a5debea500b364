// A program's kernels: to NVPTX, to the host, with a descriptor each.
#include "codegen/gpu/EmulatedProgram.h"

#include "codegen/gpu/Emulate.h"
#include "codegen/gpu/LoweredProgram.h"

#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace gradc::codegen::gpu {

llvm::Error addEmulatedKernels(ModuleOp program, const GpuTarget &target, const CpuTarget &host,
                               llvm::Module &object) {
  auto lowered = lowerProgram(program, target, object.getContext());
  if (!lowered)
    return lowered.takeError();
  if (llvm::Error error = emulateKernels(*lowered->module, host))
    return error;
  for (auto kernel : program.getOps<exec::KernelOp>())
    lowered->module->getNamedGlobal(kernel.getSymName())
        ->setName(kernel.getSymName() + ".emulated");
  if (llvm::Linker::linkModules(object, std::move(lowered->module)))
    return llvm::createStringError("emulated kernels cannot be linked with the step program");
  for (auto kernel : program.getOps<exec::KernelOp>())
    addKernelDescriptor(kernel, *lowered,
                        object.getNamedGlobal((kernel.getSymName() + ".emulated").str()), object);
  return llvm::Error::success();
}

} // namespace gradc::codegen::gpu

// See GpuBackend.h.
#include "codegen/gpu/GpuBackend.h"
#include "codegen/gpu/EmbeddedProgram.h"
#include "codegen/gpu/EmulatedProgram.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/RegisterLimits.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace gradc::codegen::gpu {

llvm::Expected<std::unique_ptr<llvm::Module>>
GpuBackend::lowerKernels(ModuleOp planned, llvm::LLVMContext &context) const {
  auto kernels = emitKernels(planned, target);
  if (failed(kernels))
    return llvm::createStringError("kernels cannot be emitted");
  return lowerToNvptxIr(**kernels, target, context);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
GpuBackend::hostModule(ModuleOp planned, llvm::LLVMContext &context) const {
  auto object = std::make_unique<llvm::Module>("gradc", context);
  if (llvm::Error error = emulates ? addEmulatedKernels(planned, target, machine, *object)
                                   : addEmbeddedKernels(planned, target, *object))
    return error;
  return object;
}

DeviceRuntime GpuBackend::runtime() const {
  if (!emulates)
    // One file to copy to a machine that has a driver and nothing else.
    return {"gradc_cuda_device", {"libgradc_cuda.a", "-static-libstdc++", "-static-libgcc"}};
  // Boost.Context is linked in: where an executable runs, nothing need be installed for it.
  return {"gradc_emulated_device",
          {"libgradc_emulator.a", "-l:libboost_context.a", "-ldnnl", "-lgomp"}};
}

llvm::Expected<std::string> GpuBackend::assembly(ModuleOp planned) const {
  llvm::LLVMContext context;
  auto kernels = lowerKernels(planned, context);
  if (!kernels)
    return kernels.takeError();
  return emitPtx(**kernels, target);
}

llvm::Expected<std::string> GpuBackend::machineCode(ModuleOp planned) const {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return llvm::createStringError(
        "no ptxas found in $CUDA_HOME/bin or, where that is not set, on $PATH or in "
        "/usr/local/cuda/bin: install the CUDA toolkit, or use --emit ptx, which needs none");
  llvm::Expected<std::string> ptx = assembly(planned);
  if (!ptx)
    return ptx.takeError();
  llvm::Expected<Cubin> cubin = assembleWithoutSpills(*ptx, target, ptxas);
  if (!cubin)
    return cubin.takeError();
  return std::move(cubin->image);
}

} // namespace gradc::codegen::gpu

// A program's kernels: to NVPTX, to the host, with a descriptor each.
#include "codegen/gpu/EmulatedProgram.h"

#include "codegen/gpu/Emulate.h"
#include "codegen/gpu/KernelFamilies.h"
#include "codegen/gpu/Ptx.h"
#include "ir/Exec.h"
#include "ir/Nn.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

/// A launch passes the operands' buffers first, but not an accumulator's, which is the result's.
int64_t inputsOf(exec::KernelOp kernel) {
  Operation &op = kernel.getBody().front().front();
  auto fusion = dyn_cast<nn::FusionOpInterface>(op);
  bool accumulates = fusion && fusion.getAccumulatorOperand() >= 0;
  return static_cast<int64_t>(op.getNumOperands()) - (accumulates ? 1 : 0);
}

/// The fields of a GradcGpuKernel, all of them 64 bits wide.
llvm::Constant *describe(exec::KernelOp kernel, int64_t threads, llvm::Constant *emulated) {
  llvm::LLVMContext &context = emulated->getContext();
  auto number = [&](int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value);
  };
  constexpr int64_t dynamicSharedBytes = 0;
  return llvm::ConstantStruct::getAnon(
      {number(threads), number(dynamicSharedBytes), number(inputsOf(kernel)), emulated});
}

} // namespace

llvm::Error addEmulatedKernels(ModuleOp program, const GpuTarget &target, const CpuTarget &host,
                               llvm::Module &object) {
  auto printed = emitKernels(program, target);
  if (failed(printed))
    return llvm::createStringError("GPU kernels cannot be emitted");
  auto kernels = lowerToNvptxIr(**printed, target, object.getContext());
  if (!kernels)
    return kernels.takeError();
  llvm::StringMap<int64_t> threads;
  for (const llvm::Function &function : **kernels)
    threads[function.getName()] = declaredThreads(function);
  if (llvm::Error error = emulateKernels(**kernels, host))
    return error;
  for (auto kernel : program.getOps<exec::KernelOp>())
    (*kernels)->getNamedGlobal(kernel.getSymName())->setName(kernel.getSymName() + ".emulated");
  if (llvm::Linker::linkModules(object, std::move(*kernels)))
    return llvm::createStringError("emulated kernels cannot be linked with the step program");
  for (auto kernel : program.getOps<exec::KernelOp>()) {
    StringRef name = kernel.getSymName();
    llvm::GlobalVariable *emulated = object.getNamedGlobal((name + ".emulated").str());
    llvm::Constant *value = describe(kernel, threads.lookup(name), emulated);
    new llvm::GlobalVariable(object, value->getType(), /*isConstant=*/true,
                             llvm::GlobalValue::InternalLinkage, value, name);
  }
  return llvm::Error::success();
}

} // namespace gradc::codegen::gpu

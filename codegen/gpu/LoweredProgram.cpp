// See LoweredProgram.h.
#include "codegen/gpu/LoweredProgram.h"

#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Emulate.h"
#include "codegen/gpu/KernelFamilies.h"
#include "codegen/gpu/Ptx.h"
#include "ir/Nn.h"

#include "llvm/IR/Constants.h"

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

} // namespace

llvm::Expected<LoweredProgram> lowerProgram(ModuleOp program, const GpuTarget &target,
                                            llvm::LLVMContext &context) {
  auto printed = emitKernels(program, target);
  if (failed(printed))
    return llvm::createStringError("GPU kernels cannot be emitted");
  LoweredProgram lowered;
  for (auto kernel : (*printed)->getOps<LLVM::LLVMFuncOp>())
    lowered.sharedBytes[kernel.getSymName()] = sharedBytesOf(kernel);
  auto kernels = lowerToNvptxIr(**printed, target, context);
  if (!kernels)
    return kernels.takeError();
  for (const llvm::Function &function : **kernels)
    lowered.threads[function.getName()] = declaredThreads(function);
  lowered.module = std::move(*kernels);
  return lowered;
}

/// The fields of a GradcGpuKernel are 64 bits wide.
void addKernelDescriptor(exec::KernelOp kernel, const LoweredProgram &lowered,
                         llvm::Constant *emulated, llvm::Module &object) {
  llvm::LLVMContext &context = object.getContext();
  StringRef name = kernel.getSymName();
  auto number = [&](int64_t value) {
    return llvm::ConstantInt::getSigned(llvm::Type::getInt64Ty(context), value);
  };
  if (!emulated)
    emulated = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context));
  llvm::Constant *value = llvm::ConstantStruct::getAnon({number(lowered.threads.lookup(name)),
                                                         number(lowered.sharedBytes.lookup(name)),
                                                         number(inputsOf(kernel)), emulated});
  new llvm::GlobalVariable(object, value->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::InternalLinkage, value, name);
}

} // namespace gradc::codegen::gpu

// Loads kernels' object files.
#include "codegen/cpu/LoadedKernel.h"

#include "codegen/cpu/ObjectFile.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace gradc::codegen {

LoadedKernel::LoadedKernel() = default;
LoadedKernel::LoadedKernel(LoadedKernel &&) = default;
LoadedKernel &LoadedKernel::operator=(LoadedKernel &&) = default;
LoadedKernel::~LoadedKernel() = default;

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileToMemory(const CpuTarget &target, LoadedKernel::Emitter emit) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  emit(builder, *module, "kernel");
  if (failed(verify(*module)))
    return llvm::createStringError("a kernel's module does not verify");
  llvm::SmallString<128> path;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernel", "o", path))
    return llvm::createStringError(error, "no temporary file for a kernel's object");
  llvm::FileRemover remover(path);
  llvm::LLVMContext llvmContext;
  auto lowered = lowerToLlvmIr(*module, target, llvmContext);
  if (!lowered)
    return lowered.takeError();
  if (llvm::Error error = writeObjectFile(**lowered, target, path.str().str()))
    return error;
  return llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path));
}

llvm::Expected<LoadedKernel> LoadedKernel::compile(const CpuTarget &target, Emitter emit) {
  auto object = compileToMemory(target, emit);
  if (!object)
    return object.takeError();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  if (llvm::Error error = (*jit)->addObjectFile(std::move(*object)))
    return error;
  auto symbol = (*jit)->lookup("kernel");
  if (!symbol)
    return symbol.takeError();
  LoadedKernel result;
  result.jit = std::move(*jit);
  result.kernel = symbol->toPtr<GradcKernelFn>();
  return result;
}

} // namespace gradc::codegen

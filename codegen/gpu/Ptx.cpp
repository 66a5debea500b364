// MLIR modules to PTX.
#include "codegen/gpu/Ptx.h"

#include "codegen/kernels/LlvmIr.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h" // declares the initialisers of every target built
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace gradc::codegen::gpu {

namespace {

constexpr const char *triple = "nvptx64-nvidia-cuda";
/// The oldest PTX with everything that the kernels use: drivers of CUDA 12.0 and later read it.
constexpr const char *ptxVersion = "+ptx80";

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const GpuTarget &target) {
  // Calling these more than once does no harm.
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  std::string message;
  llvm::Triple parsed(triple);
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(parsed, message);
  if (!backend)
    return llvm::createStringError("no code generator for %s: %s", triple, message.c_str());
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // sums and products stay apart
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(parsed, target.name(), ptxVersion, options, std::nullopt,
                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("no code generator for %s", target.name().c_str());
  return machine;
}

} // namespace

void loadGpuDialects(MLIRContext &context) {
  loadKernelDialects(context);
  context.loadDialect<NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(context);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
lowerToNvptxIr(ModuleOp module, const GpuTarget &target, llvm::LLVMContext &context) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  auto translated = translateKernels(module, context);
  if (!translated)
    return translated.takeError();
  (*translated)->setTargetTriple((*machine)->getTargetTriple());
  (*translated)->setDataLayout((*machine)->createDataLayout());
  for (llvm::Function &function : **translated)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", target.name());
      function.addFnAttr("target-features", ptxVersion);
      function.addFnAttr(llvm::Attribute::NoUnwind);
    }
  optimise(**translated, **machine);
  return translated;
}

llvm::Expected<std::string> emitPtx(llvm::Module &module, const GpuTarget &target) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("no PTX for %s", target.name().c_str());
  passes.run(module);
  return text.str().str();
}

} // namespace gradc::codegen::gpu

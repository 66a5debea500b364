// MLIR modules to object files.
#include "codegen/cpu/ObjectFile.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace gradc::codegen {

namespace {

template <typename... Args> llvm::Error failure(const char *format, Args... args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format, args...);
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const CpuTarget &target) {
  // Calling these more than once does no harm.
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(target.triple);
  std::string message;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!backend)
    return failure("no code generator for %s: %s", target.triple.c_str(), message.c_str());
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard; // of fmuladd, which asks for it
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                   std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return failure("no code generator for %s", target.triple.c_str());
  return machine;
}

/// Must come before optimisation, which vectorises and costs by these.
void setTarget(llvm::Module &module, const CpuTarget &target, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", target.features);
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

llvm::Expected<std::unique_ptr<llvm::Module>> translate(ModuleOp module, const CpuTarget &target,
                                                        llvm::LLVMContext &context,
                                                        llvm::TargetMachine &machine) {
  auto translated = translateKernels(module, context);
  if (!translated)
    return translated.takeError();
  setTarget(**translated, target, machine);
  optimise(**translated, machine);
  return translated;
}

} // namespace

llvm::Expected<std::unique_ptr<llvm::Module>>
lowerToLlvmIr(ModuleOp module, const CpuTarget &target, llvm::LLVMContext &context) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  return translate(module, target, context, **machine);
}

llvm::Error writeObjectFile(llvm::Module &module, const CpuTarget &target,
                            const std::string &path) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return failure("%s: cannot be written: %s", path.c_str(), error.message().c_str());
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, file, nullptr, llvm::CodeGenFileType::ObjectFile))
    return failure("no object files for %s", target.triple.c_str());
  passes.run(module);
  file.close();
  if (file.has_error()) {
    error = file.error();
    file.clear_error(); // else the stream's destructor would abort
    return failure("%s: cannot be written: %s", path.c_str(), error.message().c_str());
  }
  return llvm::Error::success();
}

} // namespace gradc::codegen

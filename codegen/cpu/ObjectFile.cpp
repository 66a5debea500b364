// MLIR modules to object files.
#include "codegen/cpu/ObjectFile.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace gradc::codegen {

void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect,
                      LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
}

namespace {

template <typename... Args> llvm::Error failure(const char *format, Args... args) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format, args...);
}

LogicalResult lowerToLlvmDialect(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
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

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

llvm::Expected<std::unique_ptr<llvm::Module>> translate(ModuleOp module, const CpuTarget &target,
                                                        llvm::LLVMContext &context,
                                                        llvm::TargetMachine &machine) {
  if (failed(lowerToLlvmDialect(module)))
    return failure("kernels cannot be lowered to the llvm dialect");
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(module, context);
  if (!translated)
    return failure("kernels cannot be translated to LLVM IR");
  setTarget(*translated, target, machine);
  optimise(*translated, machine);
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

llvm::Error writeObjectFile(ModuleOp module, const CpuTarget &target, const std::string &path,
                            llvm::function_ref<void(llvm::Module &)> extend) {
  auto machine = createMachine(target);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  auto translated = translate(module, target, context, **machine);
  if (!translated)
    return translated.takeError();
  if (extend)
    extend(**translated);

  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return failure("%s: cannot be written: %s", path.c_str(), error.message().c_str());
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, file, nullptr, llvm::CodeGenFileType::ObjectFile))
    return failure("no object files for %s", target.triple.c_str());
  passes.run(**translated);
  file.close();
  if (file.has_error()) {
    error = file.error();
    file.clear_error(); // else the stream's destructor would abort
    return failure("%s: cannot be written: %s", path.c_str(), error.message().c_str());
  }
  return llvm::Error::success();
}

} // namespace gradc::codegen

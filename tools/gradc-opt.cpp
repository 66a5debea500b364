// gradc-opt: reads a module, runs passes one at a time, prints the module.
#include "ir/Exec.h"
#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "tools/driver/Target.h"
#include "tools/driver/VerifyValues.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// The options of the command line, with value verification added to the passes.
static MlirOptMainConfig verifyingConfig(std::shared_ptr<std::atomic<bool>> failed) {
  MlirOptMainConfig parsed = MlirOptMainConfig::createFromCLOptions(), config = parsed;
  config.setPassPipelineSetupFn([parsed, failed](PassManager &passes) {
    if (llvm::failed(parsed.setupPassPipeline(passes)))
      return failure();
    gradc::addValueVerification(passes, failed);
    return success();
  });
  return config;
}

/// --target=NAME, read before all options are: what passes ask is there when they are made known.
static std::string targetNamed(llvm::ArrayRef<char *> arguments) {
  llvm::StringRef name = "cpu";
  for (llvm::StringRef argument : arguments)
    if (argument.consume_front("--target="))
      name = argument;
  return name.str();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::opt<std::string> target(
      "target", llvm::cl::desc("Whose kernels passes ask for: cpu (the default) or cuda:ARCH"),
      llvm::cl::value_desc("name"));
  llvm::cl::opt<bool> verifyValues(
      "verify-values",
      llvm::cl::desc("Interpret every function before and after each pass and compare"));
  DialectRegistry registry;
  registry.insert<func::FuncDialect, gradc::nn::NnDialect, gradc::exec::ExecDialect>();
  gradc::CompileRequest request;
  request.target = targetNamed(llvm::ArrayRef(argv, argc));
  auto backend = gradc::makeBackend(request, /*times=*/nullptr);
  if (!backend) {
    llvm::errs() << llvm::toString(backend.takeError()) << "\n";
    return EXIT_FAILURE;
  }
  gradc::registerPasses((*backend)->kernels());
  registerTransformsPasses();
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, "gradc's optimizer driver\n", registry);

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  std::unique_ptr<llvm::ToolOutputFile> file = buffer ? openOutputFile(output, &error) : nullptr;
  if (!file) {
    llvm::errs() << error << "\n";
    return EXIT_FAILURE;
  }
  auto failed = std::make_shared<std::atomic<bool>>(false);
  MlirOptMainConfig config =
      verifyValues ? verifyingConfig(failed) : MlirOptMainConfig::createFromCLOptions();
  if (llvm::failed(MlirOptMain(file->os(), std::move(buffer), registry, config)) || *failed)
    return EXIT_FAILURE;
  file->keep();
  return EXIT_SUCCESS;
}

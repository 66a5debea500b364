// A compile from model definition to executable, phase by phase.
#include "tools/driver/Compile.h"
#include "codegen/Link.h"
#include "codegen/cpu/ObjectFile.h"
#include "codegen/host/StepProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tools/driver/ByteSize.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <limits>
#include <unistd.h>

using namespace mlir;

namespace gradc {
namespace {

std::string oneLine(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

int64_t physicalMemory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

/// The phase whose module `emit` prints, for kinds that are IR.
std::optional<Phase> phaseOfEmit(llvm::StringRef emit) {
  if (emit == "nn")
    return Phase::import;
  if (emit == "exec")
    return Phase::memoryPlan;
  return std::nullopt;
}

} // namespace

Compiler::Compiler(CompileRequest asked)
    : request(std::move(asked)), library(request.products),
      context(std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED)) {
  context->loadDialect<func::FuncDialect, nn::NnDialect, exec::ExecDialect>();
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstDiagnostic.empty()) {
      llvm::raw_string_ostream stream(firstDiagnostic);
      if (!isa<UnknownLoc>(diagnostic.getLocation()))
        stream << diagnostic.getLocation() << ": ";
      stream << diagnostic;
    }
    return success();
  });
  if (std::optional<Phase> phase = phaseOfEmit(request.emit); phase && !request.to)
    request.to = phase;
}

Failure Compiler::diagnosed(Exit code, const std::string &fallback) {
  std::string text = firstDiagnostic.empty() ? fallback : firstDiagnostic;
  return {code, text.substr(0, text.find('\n'))};
}

Failure Compiler::timed(Phase phase, llvm::function_ref<Failure()> work) {
  auto begin = std::chrono::steady_clock::now();
  Failure failure = work();
  seconds.push_back(
      {phase, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  if (failure || request.dumpFolder.empty() || phase >= Phase::codegen)
    return failure;
  std::string name;
  llvm::raw_string_ostream(name) << static_cast<int>(phase) + 1 << "-"
                                 << phases()[static_cast<size_t>(phase)].name << ".mlir";
  if (std::error_code error = llvm::sys::fs::create_directories(request.dumpFolder))
    return {Exit::machineFault, request.dumpFolder + ": cannot be made: " + error.message()};
  return writeModule(request.dumpFolder + "/" + name);
}

/// A module that an earlier compile wrote after a phase, as it is.
Failure Compiler::resume() {
  model.module = parseSourceFile<ModuleOp>(request.model, context.get());
  if (!model.module)
    return diagnosed(Exit::userError, request.model + ": cannot be read");
  std::optional<ModelInfo> info = modelInfo(module());
  if (!info)
    return {Exit::userError, request.model + ": holds no nn.model attribute; give a module that "
                                             "--compile-to wrote"};
  model.info = *info;
  return {};
}

Failure Compiler::import() {
  llvm::Expected<ImportedModel> imported = importModel(request.model, request.import, *context);
  if (!imported)
    return {Exit::userError, oneLine(imported.takeError())};
  model = std::move(*imported);
  return {};
}

Failure Compiler::runPasses(Phase phase) {
  if (phase == Phase::recompute)
    if (Failure failure = chooseRecompute())
      return failure;
  return runPhase(phase, module());
}

Failure Compiler::runPhase(Phase phase, ModuleOp onto) {
  PassManager passes(context.get());
  buildPhase(phase, passes, request.passes, library);
  if (failed(passes.run(onto)))
    // A model of the user's own can be at fault as much as we can; a config.json cannot.
    return diagnosed(model.info.config.empty() ? Exit::userError : Exit::defect,
                     "phase " + phases()[static_cast<size_t>(phase)].name.str() + " failed");
  return {};
}

/// Sets the passes' recompute mode or, for auto, the first level whose planned peak is within the
/// budget. Levels are tried in order, so that a lower budget never gives a higher peak.
Failure Compiler::chooseRecompute() {
  if (request.recompute != "auto") {
    request.passes.recompute = request.recompute;
    return {};
  }
  int64_t budget = request.memoryBudget ? request.memoryBudget : physicalMemory();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int level = 0, levels = 1; level < levels; ++level) {
    request.passes.recomputeLevel = level;
    OwningOpRef<ModuleOp> trial(module().clone());
    for (Phase phase :
         {Phase::recompute, Phase::trainingStep, Phase::fusion, Phase::schedule, Phase::memoryPlan})
      if (Failure failure = runPhase(phase, *trial))
        return failure;
    levels = static_cast<int>((*trial)->getAttrOfType<IntegerAttr>("nn.recompute_levels").getInt());
    int64_t peak = codegen::memoryByKind(*trial).peak;
    least = std::min(least, peak);
    if (peak <= budget)
      return {};
  }
  std::string asked = request.memoryBudget ? "--memory-budget" : "this machine's memory";
  return {Exit::userError,
          llvm::formatv("{0}, {1} bytes, cannot be met: the least that this step can be planned in "
                        "is {2} bytes ({3}); give that much, or a smaller --micro-batch or --seq",
                        asked, budget, least, formatByteSize(least))};
}

Failure Compiler::plan() {
  for (const PhaseInfo &info : phases()) {
    if (info.phase >= Phase::codegen || (request.to && info.phase > *request.to))
      break;
    if (request.from && info.phase <= *request.from && info.phase != Phase::import)
      continue;
    Failure failure = timed(info.phase, [&] {
      if (info.phase != Phase::import)
        return runPasses(info.phase);
      return request.from ? resume() : import();
    });
    if (failure)
      return failure;
  }
  return {};
}

Failure Compiler::compile() {
  if (Failure failure = plan())
    return failure;
  if (request.to && *request.to <= Phase::memoryPlan)
    return writeModule(request.output);
  return request.emit == "llvm" ? emitLlvm() : generate();
}

codegen::CompileFlags Compiler::flags() const {
  return {model.info.microBatch,
          model.info.seq,
          request.passes.gradAccum,
          request.passes.optimizer,
          request.init,
          request.passes.fuse,
          request.recompute,
          request.passes.precision};
}

Failure Compiler::generate() {
  std::string object = request.output + ".o";
  Failure failure = timed(Phase::codegen, [&]() -> Failure {
    std::string text = metadata();
    auto kernels = codegen::emitKernels(module(), target);
    if (failed(kernels))
      return diagnosed(Exit::defect, "kernels cannot be emitted");
    llvm::Error error = codegen::writeObjectFile(**kernels, target, object, [&](llvm::Module &out) {
      codegen::emitStepProgram(module(), text, out);
    });
    return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
  });
  if (!failure && request.to != Phase::codegen)
    failure = timed(Phase::link, [&]() -> Failure {
      llvm::Error error = codegen::linkExecutable(object, request.output);
      return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
    });
  if (request.to != Phase::codegen || failure)
    llvm::sys::fs::remove(object);
  return failure;
}

Failure Compiler::emitLlvm() {
  return timed(Phase::codegen, [&]() -> Failure {
    auto kernels = codegen::emitKernels(module(), target);
    if (failed(kernels))
      return diagnosed(Exit::defect, "kernels cannot be emitted");
    llvm::LLVMContext llvmContext;
    auto translated = codegen::lowerToLlvmIr(**kernels, target, llvmContext);
    if (!translated)
      return {Exit::defect, oneLine(translated.takeError())};
    std::error_code error;
    llvm::raw_fd_ostream file(request.output, error);
    if (error)
      return {Exit::machineFault, request.output + ": cannot be written: " + error.message()};
    (*translated)->print(file, nullptr);
    return {};
  });
}

Failure Compiler::writeModule(const std::string &path) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return {Exit::machineFault, path + ": cannot be written: " + error.message()};
  OpPrintingFlags printing;
  printing.elideLargeElementsAttrs(64);
  module()->print(file, request.to ? OpPrintingFlags() : printing);
  file << "\n";
  file.close();
  if (file.has_error()) {
    error = file.error();
    file.clear_error();
    return {Exit::machineFault, path + ": cannot be written: " + error.message()};
  }
  return {};
}

} // namespace gradc

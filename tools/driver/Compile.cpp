// A compile from model definition to executable, phase by phase.
#include "tools/driver/Compile.h"
#include "codegen/Link.h"
#include "codegen/cpu/ObjectFile.h"
#include "codegen/host/StepProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "tools/driver/ByteSize.h"
#include "tools/driver/LossChunk.h"
#include "tools/driver/RecordedFlags.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
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

codegen::CpuTarget targetOf(const CompileRequest &request) {
  codegen::CpuTarget target = codegen::CpuTarget::host();
  target.threads = request.threads;
  return target;
}

} // namespace

Compiler::Compiler(CompileRequest asked)
    : request(std::move(asked)), target(targetOf(request)), library(target, request.products),
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
  if (!failure && phase < Phase::codegen && !(phase == Phase::import && request.from))
    recordPhase(module(), phase, request, model.info);
  seconds.push_back(
      {phase, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()});
  if (failure || request.dumpFolder.empty() || phase >= Phase::codegen)
    return failure;
  std::string name;
  llvm::raw_string_ostream(name) << static_cast<int>(phase) + 1 << "-" << nameOf(phase) << ".mlir";
  if (std::error_code error = llvm::sys::fs::create_directories(request.dumpFolder))
    return {Exit::machineFault, request.dumpFolder + ": cannot be made: " + error.message()};
  return writeModule(request.dumpFolder + "/" + name);
}

/// A module that an earlier compile wrote after a phase, as it is.
Failure Compiler::resume() {
  llvm::Expected<ImportedModel> reopened = reopenModule(request.model, *context);
  if (!reopened)
    return {Exit::userError, oneLine(reopened.takeError())};
  model = std::move(*reopened);
  auto phase = module()->getAttrOfType<StringAttr>("nn.phase");
  if (!phase)
    return {Exit::userError,
            request.model + ": was not written after a phase; leave out --compile-from"};
  if (phase.getValue() != nameOf(*request.from))
    return {Exit::userError, request.model + ": was written after phase " + phase.getValue().str() +
                                 "; pass --compile-from " + phase.getValue().str()};
  if (request.import.microBatch.value_or(model.info.microBatch) != model.info.microBatch ||
      request.import.seq.value_or(model.info.seq) != model.info.seq)
    return {Exit::userError, request.model + ": was compiled for --micro-batch " +
                                 std::to_string(model.info.microBatch) + " --seq " +
                                 std::to_string(model.info.seq) + "; leave both out"};
  Failure failure = restoreFlags(module(), request);
  target.threads = request.threads; // a planned module has its kernels' tasks
  return failure ? failure : checkLossChunk();
}

Failure Compiler::import() {
  llvm::Expected<ImportedModel> imported = importModel(request.model, request.import, *context);
  if (!imported)
    return {Exit::userError, oneLine(imported.takeError())};
  model = std::move(*imported);
  return checkLossChunk();
}

Failure Compiler::checkLossChunk() const {
  int64_t rows = request.passes.lossChunk, tokens = model.info.microBatch * model.info.seq;
  int64_t least = llvm::divideCeilSigned(tokens, mostLossChunks);
  if (rows <= 0 || rows >= least)
    return {};
  return {Exit::userError, "--loss-chunk " + std::to_string(rows) + " cuts the " +
                               std::to_string(tokens) + " tokens of a microbatch into more than " +
                               std::to_string(mostLossChunks) + " chunks; give " +
                               std::to_string(least) + " or more"};
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
                     "phase " + nameOf(phase).str() + " failed");
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
    for (Phase phase : {Phase::recompute, Phase::trainingStep, Phase::chunkLoss, Phase::fusion,
                        Phase::schedule, Phase::memoryPlan})
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

/// An output must not be the model itself, nor a device or pipe where an executable replaces it.
Failure Compiler::checkOutput() const {
  namespace fs = llvm::sys::fs;
  llvm::SmallString<128> config(request.model);
  llvm::sys::path::append(config, "config.json");
  for (llvm::StringRef input : {llvm::StringRef(request.model), config.str()})
    if (fs::equivalent(input, request.output))
      return {Exit::userError,
              "-o " + request.output + " is the model itself; choose another name"};
  bool isProgram = request.emit == "exe" && (!request.to || *request.to >= Phase::codegen);
  if (isProgram && fs::exists(request.output) && !fs::is_regular_file(request.output))
    return {Exit::userError, "-o " + request.output + " is no regular file; choose another name"};
  return {};
}

Failure Compiler::compile() {
  if (Failure failure = checkOutput())
    return failure;
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
          request.passes.precision,
          request.passes.float8Scaling,
          formatLossChunk(request.passes.lossChunk),
          model.info.documentSeparator};
}

Failure Compiler::generate() {
  if (request.to == Phase::codegen)
    return timed(Phase::codegen, [&] { return writeObject(request.output); });
  llvm::SmallString<128> object;
  if (std::error_code error = llvm::sys::fs::createUniqueFile(request.output + ".%%%%%%.o", object))
    return {Exit::machineFault, request.output + ": cannot be written: " + error.message() +
                                    "; choose a folder that exists and has room"};
  Failure failure = timed(Phase::codegen, [&] { return writeObject(object.str().str()); });
  if (!failure)
    failure = timed(Phase::link, [&]() -> Failure {
      llvm::Error error = codegen::linkExecutable(object.str().str(), request.output);
      return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
    });
  llvm::sys::fs::remove(object);
  return failure;
}

Failure Compiler::writeObject(const std::string &path) {
  std::string text = metadata();
  auto kernels = codegen::emitKernels(module(), target);
  if (failed(kernels))
    return diagnosed(Exit::defect, "kernels cannot be emitted");
  llvm::Error error = codegen::writeObjectFile(**kernels, target, path, [&](llvm::Module &out) {
    codegen::emitStepProgram(module(), text, out);
  });
  return error ? Failure{Exit::machineFault, oneLine(std::move(error))} : Failure{};
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

// A compile from model definition to executable, phase by phase.
#include "tools/driver/Compile.h"
#include "ir/Exec.h"
#include "ir/Explanation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "tools/driver/ByteSize.h"
#include "tools/driver/LossChunk.h"
#include "tools/driver/RecordedFlags.h"
#include "tools/driver/Target.h"

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

int64_t physicalMemory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

/// `transformer.h.0.attn: ` or `model.mlir:3:8: `, whatever else the location has.
void printPlace(Location location, llvm::raw_ostream &out) {
  if (auto name = location->findInstanceOf<NameLoc>())
    out << name.getName().getValue() << ": ";
  else if (auto line = location->findInstanceOf<FileLineColLoc>())
    out << line.getFilename().getValue() << ":" << line.getLine() << ":" << line.getColumn()
        << ": ";
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
    : request(std::move(asked)),
      context(std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED)) {
  context->loadDialect<func::FuncDialect, nn::NnDialect, exec::ExecDialect>();
  context->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstDiagnostic.empty()) {
      llvm::raw_string_ostream stream(firstDiagnostic);
      printPlace(diagnostic.getLocation(), stream);
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
  if (Failure failure = restoreFlags(module(), request))
    return failure;
  if (Failure failure = checkLossChunk())
    return failure;
  return *request.from == Phase::memoryPlan ? checkPlanned() : Failure{};
}

/// What was planned elsewhere, and perhaps edited since.
Failure Compiler::checkPlanned() {
  PassManager passes(context.get());
  buildPlanChecks(passes);
  return failed(passes.run(module())) ? diagnosed(Exit::userError, "the plan is not sound")
                                      : Failure{};
}

/// Once the flags are known that a resumed module was planned with.
Failure Compiler::chooseBackend() {
  if (request.weightPanels == "on" && (request.target != "cpu" || request.gemm == "library"))
    return {Exit::userError,
            "--weight-panels on: only generated products of the CPU read panels; leave it out, or "
            "use --target cpu with --gemm generated"};
  if (request.streams == "2" && request.target == "cpu")
    return {Exit::userError,
            "--streams 2: the CPU runs one command at a time; leave it out, or use "
            "--target cuda:ARCH"};
  if (!request.passes.epilogues && request.target == "cpu")
    return {Exit::userError, "--epilogues off: products on the CPU have none; leave it out, or use "
                             "--target cuda:ARCH"};
  if (request.gemm == "auto")
    products = std::make_unique<ProductChoice>(ProductChoice::onThisMachine(hostOf(request)));
  auto chosen = makeBackend(request, products.get());
  if (!chosen)
    return {Exit::userError, oneLine(chosen.takeError())};
  backend = std::move(*chosen);
  return {};
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
  Failure failure = runPhase(phase, module());
  if (!failure && phase == Phase::memoryPlan && products)
    reportProducts();
  return failure;
}

/// Once every product has been asked about.
void Compiler::reportProducts() {
  if (llvm::Error error = products->save())
    warningLines.push_back(oneLine(std::move(error)));
  if (!products->failure().empty())
    warningLines.push_back(products->failure());
  chosenProducts = products->summary();
  explain(module(), "products", products->lines());
}

Failure Compiler::runPhase(Phase phase, ModuleOp onto) {
  if (phase == Phase::memoryPlan)
    if (Failure failure = checkLimits(onto))
      return failure;
  PassManager passes(context.get());
  buildPhase(phase, passes, request.passes, backend->kernels());
  return failed(passes.run(onto)) ? failureOf(phase) : Failure{};
}

/// Whose fault it is that a phase's passes failed, and what they said.
Failure Compiler::failureOf(Phase phase) {
  // A model of the user's own can be at fault as much as we can; a config.json cannot.
  bool isDefect = !model.info.config.empty();
  return diagnosed(isDefect ? Exit::defect : Exit::userError,
                   "phase " + nameOf(phase).str() + " failed");
}

/// What is beyond the target's kernels is the user's choice of model and target.
Failure Compiler::checkLimits(ModuleOp unplanned) {
  WalkResult result = unplanned.walk([&](Operation *op) {
    std::string limits = backend->kernels().limits(op);
    if (limits.empty())
      return WalkResult::advance();
    op->emitOpError(limits);
    return WalkResult::interrupt();
  });
  return result.wasInterrupted() ? diagnosed(Exit::userError, "the target has no such kernel")
                                 : Failure{};
}

/// Auto: where panels serve several microbatches. A budget may still be in their way
/// (chooseRecompute).
void Compiler::chooseWeightPanels() {
  bool isWorthIt = request.passes.gradAccum > 1 && request.target == "cpu";
  request.passes.weightPanels =
      request.weightPanels == "on" || (request.weightPanels == "auto" && isWorthIt);
}

/// Auto: two on a GPU, which has room for small kernels beside others. A budget may be in the way.
void Compiler::chooseStreams() {
  bool hasTwo = request.streams == "2" || (request.streams == "auto" && request.target != "cpu");
  request.passes.streams = hasTwo ? 2 : 1;
}

/// What was not asked for and takes memory, one thing at a time; false where nothing is left.
bool Compiler::takeBackWhatIsOnlyFaster() {
  Options &passes = request.passes;
  if (passes.weightPanels && request.weightPanels == "auto") {
    passes.weightPanels = false;
    return true;
  }
  if (passes.streams > 1 && request.streams == "auto") {
    passes.streams = 1;
    withoutStreams = true;
    return true;
  }
  return false;
}

/// Of a step that recomputes as much as the level says; sets how many levels there are.
Failure Compiler::planPeak(int level, int64_t &peak, int &levels) {
  request.passes.recomputeLevel = level;
  OwningOpRef<ModuleOp> trial(module().clone());
  for (Phase phase : {Phase::recompute, Phase::trainingStep, Phase::chunkLoss, Phase::fusion,
                      Phase::schedule, Phase::memoryPlan})
    if (Failure failure = runPhase(phase, *trial))
      return failure;
  levels = static_cast<int>((*trial)->getAttrOfType<IntegerAttr>("nn.recompute_levels").getInt());
  peak = codegen::memoryByKind(*trial).peak;
  return {};
}

/// Sets the passes' recompute mode or, for auto, the first level whose planned peak is within the
/// budget. Levels are tried in order, so that a lower budget never gives a higher peak. Panels and
/// a second stream that are not asked for go before anything is recomputed for them.
Failure Compiler::chooseRecompute() {
  if (request.recompute != "auto") {
    request.passes.recompute = request.recompute;
    return {};
  }
  int64_t budget = request.memoryBudget ? request.memoryBudget : physicalMemory();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int level = 0, levels = 1; level < levels; ++level) {
    int64_t peak = 0;
    if (Failure failure = planPeak(level, peak, levels))
      return failure;
    while (peak > budget && takeBackWhatIsOnlyFaster())
      if (Failure failure = planPeak(level, peak, levels))
        return failure;
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
      Failure imported = request.from ? resume() : import();
      if (!imported) {
        chooseWeightPanels();
        chooseStreams();
      }
      return imported ? imported : chooseBackend();
    });
    if (failure)
      return failure;
  }
  return {};
}

} // namespace gradc

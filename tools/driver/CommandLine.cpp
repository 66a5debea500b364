// The command line of gradc: flags to requests, results to text.
#include "tools/driver/CommandLine.h"
#include "passes/Optimizers.h"
#include "tools/driver/ByteSize.h"
#include "tools/driver/Compile.h"
#include "tools/driver/Explain.h"
#include "tools/driver/LossChunk.h"
#include "tools/driver/Report.h"

#include <CLI/CLI.hpp>

#include <csignal>

namespace gradc {
namespace {

int fail(const Failure &failure) {
  llvm::errs() << "error: " << failure.message << "\n";
  return static_cast<int>(failure.code);
}

/// Flags of the contract whose other values later versions bring; refused by name, never ignored.
struct FixedFlags {
  std::string mesh, schedule, target = "cpu";
  int zero = 0;
  bool emulate = false, deterministic = false;

  void add(CLI::App &app) {
    app.add_option("--mesh", mesh, "Devices, e.g. dp=1: one device in this version");
    app.add_option("--zero", zero, "Sharding of state: 0")->capture_default_str();
    app.add_option("--schedule", schedule, "Not in this version");
    app.add_option("--target", target, "What to compile for: cpu")->capture_default_str();
    app.add_flag("--emulate", emulate, "Not in this version");
    app.add_flag("--deterministic", deterministic,
                 "Results are bit-reproducible with or without it");
  }

  Failure check() const {
    auto refuse = [](const std::string &flag, const std::string &mend) {
      return Failure{Exit::userError, flag + " is not implemented in this version; " + mend};
    };
    for (llvm::StringRef axis : llvm::split(mesh, ','))
      if (!axis.empty() && axis.split('=').second != "1")
        return refuse("--mesh " + mesh, "use one device: dp=1");
    if (zero != 0 || !schedule.empty())
      return refuse("sharding (--zero, --schedule)", "leave both out");
    if (target != "cpu" || emulate)
      return refuse("--target " + target + (emulate ? " --emulate" : ""), "use --target cpu");
    return {};
  }
};

/// The flags that compile and plan share.
struct ModelFlags {
  CompileRequest request;
  FixedFlags fixed;
  int64_t microBatch = 0, seq = 0;
  std::string fuse = "on", dropout = "config", gemm = "generated", documentMask = "off", budget;
  std::string lossChunk = "auto";
  std::optional<int64_t> documentSeparator;

  void add(CLI::App &app) {
    app.add_option("MODEL", request.model,
                   "A config.json, a folder holding one, or an .mlir module")
        ->required();
    app.add_option("--micro-batch", microBatch, "Sequences of one microbatch (default 1)")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
    app.add_option("--seq", seq,
                   "Tokens of a sequence (default: the model's positions, at most 1024)")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
    app.add_option("--grad-accum", request.passes.gradAccum, "Microbatches of a step")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
        ->capture_default_str();
    app.add_option(
           "--precision", request.passes.precision,
           "What matrix products and attention compute in: fp32; tf32: inputs rounded to 10 "
           "bits; bf16; fp16, with a dynamic loss scale; fp8: linear layers in fp8, the rest in "
           "bf16")
        ->check(CLI::IsMember({"fp32", "tf32", "bf16", "fp16", "fp8"}))
        ->capture_default_str();
    app.add_option("--fp8-scaling", request.passes.float8Scaling,
                   "Scales of fp8: current (each tensor's own magnitudes) or delayed (those of the "
                   "steps before)")
        ->check(CLI::IsMember({"current", "delayed"}))
        ->capture_default_str();
    app.add_option("--optimizer", request.passes.optimizer, "One of " + optimizerNames())
        ->capture_default_str();
    app.add_option("--fuse", fuse, "Fusion of row ops: on or off")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    app.add_option("--dropout", dropout, "config (what config.json says) or off")
        ->check(CLI::IsMember({"config", "off"}))
        ->capture_default_str();
    app.add_option("--document-mask", documentMask,
                   "on: rows hold documents one after another, which neither attention nor "
                   "positions cross, and the label at a document's last token is ignored; or off")
        ->check(CLI::IsMember({"on", "off"}))
        ->capture_default_str();
    app.add_option("--document-separator", documentSeparator,
                   "The token that ends a document (default: \"eos_token_id\" of config.json)")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
    app.add_option(
           "--recompute", request.recompute,
           "Compute again in the backward instead of keeping: none; cheap: what needs no "
           "matrix product; full: all but each layer's input; auto: as little as the budget "
           "(by default this machine's memory) asks for")
        ->check(CLI::IsMember({"none", "cheap", "full", "auto"}))
        ->capture_default_str();
    app.add_option(
        "--memory-budget", budget,
        "Most bytes of planned peak, e.g. 900MiB, 1.5 GiB, 6GB; implies --recompute auto (default: "
        "none)");
    app.add_option("--loss-chunk", lossChunk,
                   "Rows whose logits are computed at a time, with their loss and gradients: a "
                   "number; auto: as many as keep them within 64 MiB; 0 or off: all")
        ->capture_default_str();
    app.add_option("--init", request.init,
                   "Initialisation: family, normal, xavier, kaiming, orthogonal")
        ->check(CLI::IsMember({"family", "normal", "xavier", "kaiming", "orthogonal"}))
        ->capture_default_str();
    app.add_option("--gemm", gemm, "Matrix products: generated kernels, or library (oneDNN)")
        ->check(CLI::IsMember({"generated", "library"}))
        ->capture_default_str();
    fixed.add(app);
  }

  Failure finish() {
    if (Failure failure = fixed.check())
      return failure;
    if (request.passes.float8Scaling != "current" && request.passes.precision != "fp8")
      return {Exit::userError, "--fp8-scaling " + request.passes.float8Scaling +
                                   " needs --precision fp8; add it or leave both out"};
    if (!findOptimizer(request.passes.optimizer))
      return {Exit::userError, "--optimizer " + request.passes.optimizer +
                                   " is not known; use one of " + optimizerNames()};
    if (!budget.empty()) {
      std::optional<int64_t> bytes = parseByteSize(budget);
      if (!bytes)
        return {Exit::userError,
                "--memory-budget " + budget + " is no size; give bytes, or e.g. 900MiB or 6GiB"};
      if (request.recompute != "auto" && request.recompute != "none")
        return {Exit::userError,
                "--memory-budget chooses what to recompute; leave out --recompute " +
                    request.recompute};
      request.recompute = "auto";
      request.memoryBudget = *bytes;
    }
    std::optional<int64_t> rows = parseLossChunk(lossChunk);
    if (!rows)
      return {Exit::userError, "--loss-chunk " + lossChunk +
                                   " is no number of rows; give one, 0 or off for all, or auto"};
    request.passes.lossChunk = *rows;
    request.import.documentMask = documentMask == "on";
    request.import.documentSeparator = documentSeparator;
    if (documentSeparator && documentMask == "off")
      return {Exit::userError, "--document-separator ends no document without --document-mask on; "
                               "pass both, or leave it out"};
    if (microBatch > 0)
      request.import.microBatch = microBatch;
    if (seq > 0)
      request.import.seq = seq;
    request.import.dropout = dropout == "off" ? DropoutPolicy::off : DropoutPolicy::asConfigured;
    request.passes.fuse = fuse == "on";
    request.products =
        gemm == "library" ? codegen::Products::library : codegen::Products::generated;
    return {};
  }
};

std::string phaseNames() {
  std::string names;
  for (const PhaseInfo &info : phases())
    names += (names.empty() ? "" : ", ") + info.name.str();
  return names;
}

Failure setPhase(const std::string &name, const char *flag, std::optional<Phase> &phase) {
  if (name.empty())
    return {};
  phase = findPhase(name);
  if (phase)
    return {};
  return {Exit::userError,
          std::string(flag) + " " + name + " is no phase; use one of " + phaseNames()};
}

/// gradc compile
struct CompileCommand {
  /// Phases that go from one to a later one, and ask for one kind of output.
  Failure checkPhases() const {
    const CompileRequest &request = flags.request;
    if (request.from && *request.from >= Phase::codegen)
      return {Exit::userError, "--compile-from " + from +
                                   " leaves nothing to compile; use a module "
                                   "of a phase up to memory-plan"};
    if (request.from && request.to && *request.to <= *request.from)
      return {Exit::userError,
              "--compile-to " + to + " does not come after --compile-from " + from};
    if (request.to && request.emit != "exe")
      return {Exit::userError,
              "--compile-to and --emit " + request.emit + ": leave out one of them"};
    if (request.from && request.emit == "nn")
      return {Exit::userError, "--emit nn writes the imported graph; leave out --compile-from"};
    return {};
  }

  ModelFlags flags;
  std::string from, to;

  explicit CompileCommand(CLI::App &app) {
    flags.add(app);
    CompileRequest &request = flags.request;
    app.add_option("-o,--output", request.output, "The executable (or file) to write")->required();
    app.add_option("--emit", request.emit, "What to write: nn, exec, llvm or exe")
        ->check(CLI::IsMember({"nn", "exec", "llvm", "exe"}))
        ->capture_default_str();
    app.add_option("--compile-to", to,
                   "Stop after this phase and write its module (or, after "
                   "codegen, the object file); one of " +
                       phaseNames());
    app.add_option("--compile-from", from,
                   "MODEL is a module that --compile-to or --dump-phases "
                   "wrote after this phase, up to memory-plan");
    app.add_option("--dump-phases", request.dumpFolder, "Folder for the module after each phase");
    app.add_flag("--timing", request.timing, "Print the seconds of each phase");
  }

  int run() {
    Failure failure = flags.finish();
    if (!failure)
      failure = setPhase(from, "--compile-from", flags.request.from);
    if (!failure)
      failure = setPhase(to, "--compile-to", flags.request.to);
    if (!failure)
      failure = checkPhases();
    if (failure)
      return fail(failure);
    Compiler compiler(flags.request);
    if (Failure failed = compiler.compile())
      return fail(failed);
    if (!flags.request.to && flags.request.emit == "exe")
      printSummary(compiler, flags.request, llvm::outs());
    if (flags.request.timing)
      printTimings(compiler, llvm::outs());
    return 0;
  }
};

/// gradc plan
struct PlanCommand {
  ModelFlags flags;
  bool json = false;
  std::string device;
  int64_t nodes = 1;

  explicit PlanCommand(CLI::App &app) {
    flags.add(app);
    app.add_flag("--json", json, "Print one JSON object");
    app.add_option("--device", device, "Not in this version");
    app.add_option("--nodes", nodes, "Not in this version: 1")->capture_default_str();
  }

  int run() {
    if (Failure failure = flags.finish())
      return fail(failure);
    if (!device.empty() || nodes != 1)
      return fail({Exit::userError,
                   "--device and --nodes are not implemented in this version; leave both out"});
    Compiler compiler(flags.request);
    if (Failure failure = compiler.plan())
      return fail(failure);
    printPlan(compiler, flags.request, json, llvm::outs());
    return 0;
  }
};

/// gradc explain
struct ExplainCommand {
  ModelFlags flags;

  explicit ExplainCommand(CLI::App &app) { flags.add(app); }

  int run() {
    if (isExecutableFile(flags.request.model)) {
      Failure failure = explainExecutable(flags.request.model, llvm::outs());
      return failure ? fail(failure) : 0;
    }
    if (Failure failure = flags.finish())
      return fail(failure);
    Compiler compiler(flags.request);
    if (Failure failure = compiler.plan())
      return fail(failure);
    explainPlan(compiler, llvm::outs());
    return 0;
  }
};

} // namespace

static int dispatch(int argc, char **argv) {
  CLI::App app("gradc compiles a model definition to an executable that trains it");
  app.set_version_flag("--version", "gradc " GRADC_VERSION);
  app.require_subcommand(1);
  CLI::App *compile = app.add_subcommand("compile", "Compile a model definition to an executable");
  CLI::App *plan = app.add_subcommand("plan", "Parameters, FLOPs and memory; builds nothing");
  CLI::App *explain = app.add_subcommand(
      "explain", "What each pass did and why: of a compiled executable (MODEL names it; flags are "
                 "not looked at), or of a model with these flags");
  CompileCommand compileCommand(*compile);
  PlanCommand planCommand(*plan);
  ExplainCommand explainCommand(*explain);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    return fail({Exit::userError, std::string(error.what()) + "; see gradc --help"});
  }
  if (*compile)
    return compileCommand.run();
  if (*plan)
    return planCommand.run();
  return explainCommand.run();
}

int runCommandLine(int argc, char **argv) {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond the limit is an error of its write
  int code = dispatch(argc, argv);
  llvm::outs().flush();
  if (!llvm::outs().has_error())
    return code;
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error(); // else the stream's destructor would abort
  return fail({Exit::machineFault, "standard output: cannot be written: " + error.message()});
}

} // namespace gradc

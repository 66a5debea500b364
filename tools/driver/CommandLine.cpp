// The command line of gradc: flags to requests, results to text.
#include "tools/driver/CommandLine.h"
#include "tools/driver/Explain.h"
#include "tools/driver/ModelFlags.h"
#include "tools/driver/Report.h"

#include <CLI/CLI.hpp>

#include <csignal>

namespace gradc {
namespace {

int fail(const Failure &failure) {
  llvm::errs() << "error: " << failure.message << "\n";
  return static_cast<int>(failure.code);
}

void printWarnings(const Compiler &compiler) {
  for (const std::string &line : compiler.warnings())
    llvm::errs() << "warning: " << line << "\n";
}

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
    app.add_option("--emit", request.emit, "What to write: nn, exec, llvm, ptx, cubin or exe")
        ->check(CLI::IsMember({"nn", "exec", "llvm", "ptx", "cubin", "exe"}))
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
    printWarnings(compiler);
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
    printWarnings(compiler);
    printPlan(compiler, flags.request, json, llvm::outs());
    return 0;
  }
};

/// gradc explain
struct ExplainCommand {
  ModelFlags flags;

  bool json = false;
  std::string html;

  explicit ExplainCommand(CLI::App &app) {
    flags.add(app);
    app.add_flag("--json", json, "Print the metadata as JSON");
    app.add_option("--html", html, "Not in this version");
  }

  int run() {
    if (!html.empty())
      return fail({Exit::userError, "--html is not implemented in this version; leave it out"});
    if (isExecutableFile(flags.request.model)) {
      if (std::string given = flags.firstGiven(); !given.empty())
        return fail({Exit::userError, given + ": " + flags.request.model +
                                          " is compiled already; leave it out, or explain the "
                                          "model with these flags"});
      Failure failure = explainExecutable(flags.request.model, json, llvm::outs());
      return failure ? fail(failure) : 0;
    }
    if (Failure failure = flags.finish())
      return fail(failure);
    Compiler compiler(flags.request);
    if (Failure failure = compiler.plan())
      return fail(failure);
    printWarnings(compiler);
    explainPlan(compiler, json, llvm::outs());
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
      "explain", "What each pass did and why: of a compiled executable (MODEL names it), or of a "
                 "model with these flags");
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

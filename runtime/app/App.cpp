// Dispatch of the command line to the commands.
#include "runtime/app/App.h"

#include <csignal>
#include <cstdio>
#include <string_view>

#include "runtime/Say.h"
#include "runtime/app/Commands.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

struct Dispatch {
  const GradcExecutable &executable;
  const Metadata &metadata;

  Status operator()(const NoCommand &) const { return Status(); }
  /// What a run is for is in its files: it does not fail for lines of progress.
  Status operator()(const TrainOptions &options) const {
    Status status = train(executable, metadata, options);
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
      say(stderr, "warning: standard output: cannot be written; lines of progress were dropped\n");
      std::clearerr(stdout);
    }
    return status;
  }
  Status operator()(const EvalOptions &options) const {
    return evaluate(executable, metadata, options);
  }
  Status operator()(const BenchOptions &options) const {
    return bench(executable, metadata, options);
  }
  Status operator()(const GenerateOptions &options) const {
    return generate(executable, metadata, options);
  }
  Status operator()(const InfoOptions &options) const {
    return info(executable, metadata, options);
  }
};

Status runCommand(const GradcExecutable &executable, int argc, const char *const *argv) {
  GRADC_ASSIGN_OR_RETURN(Command command, parseCommandLine(argc, argv, *executable.device));
  GRADC_ASSIGN_OR_RETURN(
      Metadata metadata,
      parseMetadata(std::string_view(executable.metadata, std::size_t(executable.metadataBytes))));
  Status status;
  GRADC_RETURN_IF_ERROR(
      runOnKernelStack([&] { status = std::visit(Dispatch{executable, metadata}, command); }));
  return status;
}

} // namespace

int runExecutable(const GradcExecutable &executable, int argc, const char *const *argv) {
  std::signal(SIGXFSZ, SIG_IGN); // a file beyond the limit is an error of its write
  Status status = runCommand(executable, argc, argv);
  bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (status.ok() && !written)
    status = Status::machine("standard output: cannot be written; free some disk space, or send it "
                             "to another place");
  if (!status.ok())
    say(stderr, "error: {}\n", status.message());
  return int(status.code());
}

} // namespace gradc::rt

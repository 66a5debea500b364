// Dispatch of the command line to the commands.
#include "runtime/app/App.h"

#include <csignal>
#include <cstdio>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "runtime/app/Commands.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

struct Dispatch {
  const GradcExecutable &executable;
  const Metadata &metadata;

  Status operator()(const NoCommand &) const { return Status(); }
  Status operator()(const TrainOptions &options) const {
    return train(executable, metadata, options);
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
  GRADC_ASSIGN_OR_RETURN(Command command, parseCommandLine(argc, argv));
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
  Status status;
  try {
    status = runCommand(executable, argc, argv);
  } catch (const std::system_error &error) { // of fmt, where standard output cannot be written
    status = Status::machine(fmt::format("standard output: {}", error.what()));
  }
  bool written = std::fflush(stdout) == 0;
  if (status.ok() && !written)
    status = Status::machine("standard output: cannot write; free the disk or close nothing early");
  if (!status.ok())
    fmt::print(stderr, "error: {}\n", status.message());
  return int(status.code());
}

} // namespace gradc::rt

// Runs a command of the toy executable in a child process, as a user would.
#pragma once

#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "runtime/Abi.h"

namespace gradc::rt {

struct AppResult {
  int exitCode = -1; ///< -1 when a signal ended it
  std::string out, err;
};

/// `meanwhile`, when given, is called with the child's id while it runs.
AppResult runApp(const GradcExecutable &executable, std::vector<std::string> arguments,
                 std::function<void(pid_t)> meanwhile = nullptr);
AppResult runToy(std::vector<std::string> arguments,
                 std::function<void(pid_t)> meanwhile = nullptr);
/// With standard output, or standard error, on a disk that is full.
AppResult runToyWithFullOutput(std::vector<std::string> arguments);
AppResult runToyWithFullError(std::vector<std::string> arguments);

/// A folder of its own that is removed at the end.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string &name) const { return folder_ + "/" + name; }

private:
  std::string folder_;
};

std::string readFile(const std::string &path);
void writeFile(const std::string &path, const std::string &content);

} // namespace gradc::rt

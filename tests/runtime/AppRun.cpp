// fork, run, collect.
#include "AppRun.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

#include "ToyExecutable.h"
#include "runtime/app/App.h"

namespace gradc::rt {

static constexpr const char *full = "/dev/full";

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void writeFile(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "gradc-app-XXXXXX").string();
  if (mkdtemp(pattern.data()))
    folder_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

static AppResult runInto(const std::string &out, const std::string &err,
                         const GradcExecutable &executable, std::vector<std::string> arguments,
                         std::function<void(pid_t)> meanwhile = nullptr) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(out.c_str(), "w", stdout) || !std::freopen(err.c_str(), "w", stderr))
      _exit(99);
    std::vector<const char *> argv{"toy"};
    for (const std::string &argument : arguments)
      argv.push_back(argument.c_str());
    int code = runExecutable(executable, int(argv.size()), argv.data());
    std::fflush(nullptr);
    _exit(code);
  }
  if (meanwhile)
    meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  auto written = [](const std::string &path) { return path == full ? "" : readFile(path); };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, written(out), written(err)};
}

AppResult runApp(const GradcExecutable &executable, std::vector<std::string> arguments,
                 std::function<void(pid_t)> meanwhile) {
  TemporaryFolder folder;
  return runInto(folder.path("out"), folder.path("err"), executable, std::move(arguments),
                 std::move(meanwhile));
}

AppResult runToy(std::vector<std::string> arguments, std::function<void(pid_t)> meanwhile) {
  return runApp(toyExecutable(), std::move(arguments), std::move(meanwhile));
}

AppResult runToyWithFullOutput(std::vector<std::string> arguments) {
  TemporaryFolder folder;
  return runInto(full, folder.path("err"), toyExecutable(), std::move(arguments));
}

AppResult runToyWithFullError(std::vector<std::string> arguments) {
  TemporaryFolder folder;
  return runInto(folder.path("out"), full, toyExecutable(), std::move(arguments));
}

} // namespace gradc::rt

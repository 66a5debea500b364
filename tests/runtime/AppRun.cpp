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

AppResult runApp(const GradcExecutable &executable, std::vector<std::string> arguments,
                 std::function<void(pid_t)> meanwhile) {
  TemporaryFolder folder;
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (!std::freopen(folder.path("out").c_str(), "w", stdout) ||
        !std::freopen(folder.path("err").c_str(), "w", stderr))
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
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readFile(folder.path("out")),
          readFile(folder.path("err"))};
}

AppResult runToy(std::vector<std::string> arguments, std::function<void(pid_t)> meanwhile) {
  return runApp(toyExecutable(), std::move(arguments), std::move(meanwhile));
}

} // namespace gradc::rt

// Links a compiled object with the runtime to an executable.
#include "codegen/Link.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <optional>

namespace gradc::codegen {
namespace {

llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

llvm::Expected<std::string> findLinker() {
  if (std::optional<std::string> named = llvm::sys::Process::GetEnv("GRADC_LINKER"))
    return *named;
  for (const char *name : {"clang++-22", "clang++", "c++", "g++"})
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name))
      return *found;
  return failure("no linker found: install clang-22 or g++, or name one in GRADC_LINKER");
}

llvm::Expected<std::string> findRuntime() {
  llvm::SmallVector<std::string> folders;
  if (std::optional<std::string> named = llvm::sys::Process::GetEnv("GRADC_RUNTIME_DIR")) {
    folders.push_back(*named);
  } else {
    std::string self = llvm::sys::fs::getMainExecutable(nullptr, nullptr);
    for (const char *relative : {"../lib/gradc", "../lib"}) {
      llvm::SmallString<256> folder = llvm::sys::path::parent_path(self);
      llvm::sys::path::append(folder, relative);
      folders.push_back(std::string(folder));
    }
  }
  for (const std::string &folder : folders)
    if (llvm::sys::fs::exists(folder + "/libgradc_runtime.a"))
      return folder;
  return failure("libgradc_runtime.a not found in " + llvm::join(folders, " or ") +
                 "; run ./dev build, or name its folder in GRADC_RUNTIME_DIR");
}

} // namespace

llvm::Error linkExecutable(const std::string &objectPath, const std::string &executablePath,
                           llvm::ArrayRef<std::string> libraries) {
  llvm::Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  llvm::Expected<std::string> runtime = findRuntime();
  if (!runtime)
    return runtime.takeError();
  std::string main = *runtime + "/libgradc_runtime_main.a",
              library = *runtime + "/libgradc_runtime.a";
  // Linked under another name and renamed, so that a running executable is replaced whole.
  std::string temporary = executablePath + ".tmp";
  llvm::SmallVector<std::string> ofTarget;
  for (const std::string &library : libraries)
    ofTarget.push_back(llvm::StringRef(library).starts_with("-") ? library
                                                                 : *runtime + "/" + library);
  llvm::SmallVector<llvm::StringRef> arguments{
      *linker, "-o", temporary, objectPath, "-Wl,--whole-archive", main, "-Wl,--no-whole-archive"};
  arguments.append(ofTarget.begin(), ofTarget.end());
  arguments.append({library, "-lpthread", "-lm", "-Wl,--gc-sections"});
  llvm::SmallString<128> log;
  if (std::error_code error = llvm::sys::fs::createTemporaryFile("gradc-link", "log", log))
    return failure("cannot make a temporary file: " + error.message());
  std::string message;
  int result = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt,
                                         {std::nullopt, llvm::StringRef(log), llvm::StringRef(log)},
                                         0, 0, &message);
  std::string output;
  if (auto text = llvm::MemoryBuffer::getFile(log))
    output = (*text)->getBuffer().split('\n').first.str();
  llvm::sys::fs::remove(log);
  if (result != 0) {
    llvm::sys::fs::remove(temporary);
    return failure("linking " + executablePath + " with " + *linker +
                   " failed: " + (output.empty() ? message : output));
  }
  if (std::error_code error = llvm::sys::fs::rename(temporary, executablePath)) {
    llvm::sys::fs::remove(temporary);
    return failure(executablePath + ": cannot be written: " + error.message());
  }
  return llvm::Error::success();
}

} // namespace gradc::codegen

// Runs ptxas and reads what it says.
#include "codegen/gpu/Cubin.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

namespace gradc::codegen::gpu {

std::string findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  // Where CUDA_HOME is set it decides: one toolkit of several, or none.
  const char *home = std::getenv("CUDA_HOME");
  std::string folder = std::string(home ? home : "/usr/local/cuda") + "/bin";
  if (auto found = llvm::sys::findProgramByName("ptxas", {folder}))
    return *found;
  return "";
}

namespace {

/// The number before `unit` in a list like "Used 40 registers, 64 bytes smem"; 0 where there is
/// none.
int64_t numberBefore(llvm::StringRef text, llvm::StringRef unit) {
  size_t end = text.find(unit);
  if (end == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = text.take_front(end).rtrim();
  llvm::StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1)); // npos + 1 is 0
  int64_t number = 0;
  digits.getAsInteger(10, number);
  return number;
}

/// A file that is gone when the object is.
class TemporaryFile {
public:
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix) {
    TemporaryFile file;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernels", suffix, file.path))
      return llvm::createStringError(error, "no temporary file for a GPU's kernels");
    file.remover.setFile(file.path);
    return file;
  }
  TemporaryFile(TemporaryFile &&other) : path(other.path) {
    other.remover.releaseFile();
    remover.setFile(path);
  }
  llvm::StringRef name() const { return path; }
  llvm::Expected<std::string> read() const {
    auto buffer = llvm::errorOrToExpected(llvm::MemoryBuffer::getFile(path));
    if (!buffer)
      return buffer.takeError();
    return (*buffer)->getBuffer().str();
  }
  llvm::Error write(llvm::StringRef text) const {
    return llvm::writeToOutput(path, [&](llvm::raw_ostream &stream) {
      stream << text;
      return llvm::Error::success();
    });
  }

private:
  TemporaryFile() = default;
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

} // namespace

std::vector<KernelResources> parseResources(llvm::StringRef text) {
  std::vector<KernelResources> kernels;
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n');
  for (llvm::StringRef line : lines) {
    constexpr llvm::StringLiteral begins = "Compiling entry function '";
    if (size_t at = line.find(begins); at != llvm::StringRef::npos) {
      kernels.emplace_back();
      kernels.back().name = line.drop_front(at + begins.size()).split('\'').first.str();
    }
    if (kernels.empty())
      continue;
    KernelResources &kernel = kernels.back();
    if (line.contains("bytes stack frame")) {
      kernel.stackBytes = numberBefore(line, " bytes stack frame");
      kernel.spillStoreBytes = numberBefore(line, " bytes spill stores");
      kernel.spillLoadBytes = numberBefore(line, " bytes spill loads");
    }
    if (line.contains("Used ")) {
      kernel.registers = numberBefore(line, " registers");
      kernel.sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

llvm::Expected<Cubin> assemblePtx(const std::string &ptx, const GpuTarget &target,
                                  const std::string &ptxas) {
  auto source = TemporaryFile::create("ptx");
  if (!source)
    return source.takeError();
  auto image = TemporaryFile::create("cubin");
  if (!image)
    return image.takeError();
  auto messages = TemporaryFile::create("txt");
  if (!messages)
    return messages.takeError();
  if (llvm::Error error = source->write(ptx))
    return error;
  std::string arch = "-arch=" + target.name();
  llvm::StringRef arguments[] = {ptxas, "-v", arch, source->name(), "-o", image->name()};
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, messages->name(), messages->name()};
  std::string failure;
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &failure);
  auto said = messages->read();
  if (!said)
    return said.takeError();
  if (status != 0) {
    llvm::StringRef line = llvm::StringRef(failure.empty() ? *said : failure).split('\n').first;
    return llvm::createStringError("%s does not assemble the kernels: %s", ptxas.c_str(),
                                   line.str().c_str());
  }
  auto bytes = image->read();
  if (!bytes)
    return bytes.takeError();
  return Cubin{std::move(*bytes), parseResources(*said)};
}

} // namespace gradc::codegen::gpu

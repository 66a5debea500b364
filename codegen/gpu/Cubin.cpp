// Runs ptxas, reads what it says and checks what it wrote.
#include "codegen/gpu/Cubin.h"
#include "codegen/MachineFault.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>

namespace gradc::codegen::gpu {

std::string findPtxas() {
  const char *home = std::getenv("CUDA_HOME");
  bool isChosen = home && *home; // one toolkit of several, or none
  if (!isChosen)
    if (auto found = llvm::sys::findProgramByName("ptxas"))
      return *found;
  std::string folder = std::string(isChosen ? home : "/usr/local/cuda") + "/bin";
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

llvm::Error diskFault(const llvm::Twine &path, const std::string &cause) {
  return llvm::make_error<MachineFault>((path + ": cannot be used for a GPU's kernels: " + cause +
                                         "; set TMPDIR to a folder that exists and has room")
                                            .str());
}

llvm::Error assemblerFault(const std::string &ptxas, const llvm::Twine &what) {
  return llvm::make_error<MachineFault>(
      (ptxas + " does not assemble the kernels: " + what +
       "; set CUDA_HOME to another toolkit, or to an empty folder: PTX alone suffices, which an "
       "executable then has and --emit ptx writes")
          .str());
}

/// A file that is gone when the object is.
class TemporaryFile {
public:
  static llvm::Expected<TemporaryFile> create(llvm::StringRef suffix) {
    TemporaryFile file;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("kernels", suffix, file.path)) {
      llvm::SmallString<128> folder;
      llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
      return diskFault(folder, error.message());
    }
    file.remover.setFile(file.path);
    return file;
  }
  TemporaryFile(TemporaryFile &&other) : path(other.path) {
    other.remover.releaseFile();
    remover.setFile(path);
  }
  llvm::StringRef name() const { return path; }
  /// Another program may have removed it.
  llvm::ErrorOr<std::string> read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      return buffer.getError();
    return (*buffer)->getBuffer().str();
  }
  llvm::Error write(llvm::StringRef text) const {
    std::error_code error;
    llvm::raw_fd_ostream stream(path, error);
    if (error)
      return diskFault(path, error.message());
    stream << text;
    stream.close();
    error = stream.error();
    stream.clear_error(); // else the stream's destructor would abort
    return error ? diskFault(path, error.message()) : llvm::Error::success();
  }

private:
  TemporaryFile() = default;
  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};

/// The line of the assembler's that has the error; the first where none says so.
llvm::StringRef complaint(llvm::StringRef said) {
  llvm::SmallVector<llvm::StringRef> lines;
  said.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    if (line.contains("error") || line.contains("fatal"))
      return line;
  return lines.empty() ? "it says nothing" : lines.front();
}

/// Runs the assembler; empty, or what went wrong.
std::string runAssembler(llvm::ArrayRef<llvm::StringRef> command, const TemporaryFile &messages,
                         unsigned mostSeconds) {
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, messages.name(), messages.name()};
  std::string failure;
  auto begin = std::chrono::steady_clock::now();
  int status = llvm::sys::ExecuteAndWait(command.front(), command, std::nullopt, redirects,
                                         mostSeconds, 0, &failure);
  if (status == 0)
    return "";
  if (status < 0 && std::chrono::steady_clock::now() - begin >= std::chrono::seconds(mostSeconds))
    return "it did not end within " + std::to_string(mostSeconds) + " seconds";
  if (!failure.empty())
    return llvm::StringRef(failure).split('\n').first.str();
  auto said = messages.read();
  return "exit code " + std::to_string(status) + ": " + complaint(said ? *said : "").str();
}

/// Empty, or why an image is no code of the kernels.
std::string defectOf(llvm::StringRef image, llvm::StringRef ptx) {
  constexpr size_t machineAt = 18, headerBytes = 64; // of ELF64
  if (image.size() < headerBytes || !image.starts_with(llvm::ELF::ElfMagic))
    return "what it wrote is no ELF file";
  if (llvm::support::endian::read16le(image.data() + machineAt) != llvm::ELF::EM_CUDA)
    return "what it wrote is no code of a GPU";
  for (size_t at = ptx.find(kernelEntry); at != llvm::StringRef::npos;
       at = ptx.find(kernelEntry, at)) {
    at += kernelEntry.size();
    std::string name = ptx.substr(at).split('(').first.str();
    if (!image.contains(llvm::StringRef(name.c_str(), name.size() + 1))) // with its zero byte
      return "what it wrote has no kernel " + name;
  }
  return "";
}

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
                                  const std::string &ptxas, unsigned mostSeconds) {
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
  std::string failure = runAssembler({ptxas, "-v", arch, source->name(), "-o", image->name()},
                                     *messages, mostSeconds);
  if (!failure.empty())
    return assemblerFault(ptxas, failure);
  auto bytes = image->read(), said = messages->read();
  if (!bytes || !said)
    return assemblerFault(ptxas, "what it wrote is gone");
  if (std::string defect = defectOf(*bytes, ptx); !defect.empty())
    return assemblerFault(ptxas, defect);
  return Cubin{std::move(*bytes), parseResources(*said)};
}

} // namespace gradc::codegen::gpu

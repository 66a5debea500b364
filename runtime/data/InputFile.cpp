// Opens, checks and reads a file with the plain POSIX calls.
#include "runtime/data/InputFile.h"

#include "runtime/data/FileError.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gradc::rt {

InputFile::InputFile(InputFile &&other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_), identity_(other.identity_) {}

InputFile &InputFile::operator=(InputFile &&other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(identity_, other.identity_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Expected<InputFile> InputFile::open(const std::string &path) {
  // O_NONBLOCK: opening a pipe by mistake must fail below, not wait for a writer.
  InputFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor_ < 0)
    return fileError(path, "open", errno);
  struct stat info;
  if (::fstat(file.descriptor_, &info) < 0)
    return fileError(path, "read", errno);
  if (!S_ISREG(info.st_mode))
    return Status::user(fmt::format("{}: is not a regular file; give the path of a file", path));
  file.size_ = static_cast<uint64_t>(info.st_size);
  file.identity_ = {info.st_dev, info.st_ino};
  return file;
}

Status InputFile::read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return fileError(path_, "read", errno);
    if (got == 0)
      return Status::machine(
          fmt::format("{}: ends at byte {}, of {} when it was opened: it was cut "
                      "short meanwhile; restore the file and run again",
                      path_, offset, size_));
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
  return {};
}

Expected<std::string> readText(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  std::string text(file.size(), '\0');
  GRADC_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

} // namespace gradc::rt

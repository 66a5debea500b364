// Opens, checks and maps a file with the plain POSIX calls.
#include "runtime/data/MappedFile.h"

#include "runtime/data/FileError.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace gradc::rt {

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_)
    ::munmap(const_cast<std::byte *>(data_), size_);
}

void MappedFile::release(size_t offset, size_t size) const {
  // The kernel maps more than the page that was touched: up to what a huge page holds.
  constexpr uintptr_t huge = uintptr_t(2) << 20;
  uintptr_t base = reinterpret_cast<uintptr_t>(data_);
  uintptr_t begin = std::max(base, (base + offset) / huge * huge);
  uintptr_t end = std::min(base + size_, (base + offset + size + huge - 1) / huge * huge);
  if (begin < end)
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

Expected<MappedFile> MappedFile::open(const std::string &path, AccessPattern pattern) {
  // O_NONBLOCK: opening a pipe by mistake must fail below, not wait for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return fileError(path, "open", errno);

  struct stat info;
  int error = ::fstat(descriptor, &info) < 0 ? errno : 0;
  if (error == 0 && !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return Status::user(fmt::format("{}: is not a regular file; give the path of a file", path));
  }

  MappedFile file;
  if (error == 0 && info.st_size > 0) {
    size_t size = static_cast<size_t>(info.st_size);
    void *address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (address == MAP_FAILED) {
      error = errno;
    } else {
      file.data_ = static_cast<const std::byte *>(address);
      file.size_ = size;
      ::madvise(address, size,
                pattern == AccessPattern::sequential ? MADV_SEQUENTIAL : MADV_RANDOM);
    }
  }
  ::close(descriptor);
  if (error != 0)
    return fileError(path, "read", error);
  return file;
}

} // namespace gradc::rt

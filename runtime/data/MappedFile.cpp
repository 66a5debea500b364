// Maps a file.
#include "runtime/data/MappedFile.h"

#include "runtime/data/FileError.h"
#include "runtime/data/InputFile.h"

#include <cerrno>
#include <sys/mman.h>
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

Expected<MappedFile> MappedFile::open(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(InputFile input, InputFile::open(path));
  MappedFile file;
  size_t size = static_cast<size_t>(input.size());
  if (size == 0)
    return file;
  void *address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, input.descriptor(), 0);
  if (address == MAP_FAILED)
    return fileError(path, "read", errno);
  file.data_ = static_cast<const std::byte *>(address);
  file.size_ = size;
  ::madvise(address, size, MADV_SEQUENTIAL);
  return file;
}

} // namespace gradc::rt

// See FolderLock.h. The lock is on a file of the folder, which stays there.
#include "runtime/checkpoint/FolderLock.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

namespace gradc::rt {

Expected<FolderLock> FolderLock::take(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string path = folder + "/.lock";
  int file = error ? -1 : ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0)
    return Status::machine(fmt::format("{}: cannot be made or written: {}; choose another folder",
                                       folder, error ? error.message() : std::strerror(errno)));
  if (::flock(file, LOCK_EX | LOCK_NB) == 0)
    return FolderLock(file);
  ::close(file);
  return Status::user(fmt::format("{}: another run is training there; wait for it, or choose "
                                  "another folder",
                                  folder));
}

FolderLock &FolderLock::operator=(FolderLock &&other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

FolderLock::~FolderLock() {
  if (file_ >= 0)
    ::close(file_);
}

} // namespace gradc::rt

// Temporary file, fsync, rename, fsync of the folder.
#include "runtime/checkpoint/AtomicFile.h"

#include "runtime/data/FileError.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gradc::rt {

static std::string folderOf(const std::string &path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Status syncFolder(const std::string &folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return fileError(folder, "open", errno);
  // Some network file systems cannot sync a folder; EINVAL is their way to say so.
  int error = ::fsync(descriptor) < 0 && errno != EINVAL ? errno : 0;
  ::close(descriptor);
  return error == 0 ? Status() : fileError(folder, "sync", error);
}

Expected<AtomicFile> AtomicFile::create(const std::string &path, uint64_t totalBytes) {
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return fileError(path, "write", EISDIR);

  AtomicFile file(path, totalBytes);
  file.target_ = exists && !S_ISREG(info.st_mode) ? path : path + ".tmp";
  int flags = O_WRONLY | O_CLOEXEC | (file.inPlace() ? 0 : O_CREAT | O_TRUNC);
  file.descriptor_ = ::open(file.target_.c_str(), flags, 0644);
  if (file.descriptor_ < 0) {
    if (errno == ENOENT)
      return fileError(path, "create", ENOENT, "create its folder first");
    return file.failure("create", errno);
  }
  return file;
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0)
    return;
  ::close(descriptor_);
  if (!inPlace())
    ::unlink(target_.c_str());
}

Status AtomicFile::failure(const char *action, int error) const {
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    return fileError(path_, action, error);
  return fileError(path_, action, error,
                   fmt::format("{} bytes are needed: free some space, raise the limit or choose "
                               "another folder",
                               totalBytes_));
}

Status AtomicFile::write(const void *data, size_t size) {
  // Hashing a piece while it is in the cache, just before it is written, reads memory once.
  constexpr size_t pieceSize = size_t(1) << 20;
  const auto *next = static_cast<const std::byte *>(data);
  while (size > 0) {
    ssize_t written = ::write(descriptor_, next, std::min(size, pieceSize));
    if (written < 0) {
      if (errno == EINTR)
        continue;
      return failure("write", errno);
    }
    hasher_.update(next, static_cast<size_t>(written));
    next += written;
    size -= static_cast<size_t>(written);
  }
  return {};
}

Expected<FileDigest> AtomicFile::commit() {
  if (::fsync(descriptor_) < 0 && !inPlace())
    return failure("sync", errno);
  if (::close(std::exchange(descriptor_, -1)) < 0) {
    int error = errno;
    if (!inPlace())
      ::unlink(target_.c_str());
    return failure("close", error);
  }
  if (!inPlace()) {
    if (::rename(target_.c_str(), path_.c_str()) < 0) {
      int error = errno;
      ::unlink(target_.c_str());
      return failure("replace", error);
    }
    GRADC_RETURN_IF_ERROR(syncFolder(folderOf(path_)));
  }
  return hasher_.digest();
}

} // namespace gradc::rt

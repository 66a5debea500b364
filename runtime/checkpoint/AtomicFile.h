// Writes a file so that its path holds either the old content or the whole new one, whatever
// happens in between: a crash, a full disk, a kill.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Hash.h"

#include <string>
#include <utility>

namespace gradc::rt {

/// Writes to `PATH.tmp` in the same folder (a stale one is overwritten); `commit` makes it durable
/// and renames it over `PATH`. Without a commit the destructor removes the temporary file. A path
/// that is already a device or a pipe is written in place. One writer a path at a time.
class AtomicFile {
public:
  /// `totalBytes` is what will be written; errors of a full disk name it.
  static Expected<AtomicFile> create(const std::string &path, uint64_t totalBytes);

  AtomicFile(AtomicFile &&other) noexcept
      : path_(std::move(other.path_)), target_(std::move(other.target_)),
        totalBytes_(other.totalBytes_), descriptor_(std::exchange(other.descriptor_, -1)),
        hasher_(std::move(other.hasher_)) {}
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(const void *data, size_t size);
  /// fsync, rename, fsync of the folder. Returns size and hash of what was written.
  Expected<FileDigest> commit();

private:
  AtomicFile(std::string path, uint64_t totalBytes)
      : path_(std::move(path)), totalBytes_(totalBytes) {}
  Status failure(const char *action, int error) const;
  bool inPlace() const { return target_ == path_; }

  std::string path_;
  std::string target_; ///< the file being written: `PATH.tmp`, or `PATH` itself when in place
  uint64_t totalBytes_ = 0;
  int descriptor_ = -1;
  Hasher hasher_;
};

/// Makes renames and new names inside `folder` durable.
Status syncFolder(const std::string &folder);

} // namespace gradc::rt

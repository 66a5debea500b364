// One training run at a time in a checkpoint folder.
#pragma once

#include <string>

#include "runtime/Status.h"

namespace gradc::rt {

/// Holds the folder until destroyed, or until the process ends, however it ends.
class FolderLock {
public:
  /// Makes the folder where it is missing. A user status when another process holds it.
  static Expected<FolderLock> take(const std::string &folder);

  FolderLock(FolderLock &&other) noexcept : file_(other.file_) { other.file_ = -1; }
  FolderLock &operator=(FolderLock &&other) noexcept;
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;
  ~FolderLock();

private:
  explicit FolderLock(int file) : file_(file) {}
  int file_;
};

} // namespace gradc::rt

// A regular file open for reading.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradc::rt {

/// Which file it is, as the system tells it: two paths can lead to one, and a path to another file
/// later.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity &) const = default;
};

/// Owns the descriptor; what it reads stays there when the file is renamed or deleted meanwhile.
/// Safe to read from any thread.
class InputFile {
public:
  /// Fails when `path` is missing, unreadable or not a regular file. An empty file is allowed.
  static Expected<InputFile> open(const std::string &path);

  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) noexcept;
  ~InputFile();

  /// Bytes when it was opened.
  uint64_t size() const { return size_; }
  const FileIdentity &identity() const { return identity_; }

  /// Reads the bytes from `offset` on that fill `into`. Where they are no longer there, because the
  /// file was cut short after it was opened, that is a fault of the machine.
  Status read(uint64_t offset, std::span<std::byte> into) const;

private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
  FileIdentity identity_;
};

/// All of a small file; fails as opening and reading do.
Expected<std::string> readText(const std::string &path);

} // namespace gradc::rt

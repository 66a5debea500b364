// A whole regular file mapped read-only into memory.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace gradc::rt {

/// How the bytes will be visited; a hint to the kernel's read-ahead.
enum class AccessPattern { sequential, random };

/// Owns the mapping; `bytes()` stays valid, at the same address, until the last owner by move is
/// destroyed, even when the file is renamed or deleted meanwhile. Safe to read from any thread.
class MappedFile {
public:
  /// Fails when `path` is missing, unreadable or not a regular file. An empty file is allowed.
  static Expected<MappedFile> open(const std::string &path,
                                   AccessPattern pattern = AccessPattern::sequential);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Takes the pages around bytes [offset, offset + size) out of the process's resident memory.
  /// They stay in the system's cache and come back when they are read again.
  void release(size_t offset, size_t size) const;

private:
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace gradc::rt

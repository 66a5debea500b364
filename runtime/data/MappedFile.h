// A whole regular file mapped read-only into memory.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace gradc::rt {

/// To be read once, from its beginning on. Owns the mapping; `bytes()` stays valid, at the same
/// address, until the last owner by move is destroyed, even when the file is renamed or deleted
/// meanwhile. Safe to read from any thread.
class MappedFile {
public:
  /// Fails when `path` is missing, unreadable or not a regular file. An empty file is allowed.
  static Expected<MappedFile> open(const std::string &path);

  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  const std::byte *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace gradc::rt

// A regular file open for reading.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace gradc::rt {

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
  int descriptor() const { return descriptor_; }

  /// Reads the bytes from `offset` on that fill `into`. Where they are no longer there, because the
  /// file was cut short after it was opened, that is a fault of the machine.
  Status read(uint64_t offset, std::span<std::byte> into) const;

private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

} // namespace gradc::rt

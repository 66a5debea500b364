// Bytes of a file that stay there until they are asked for.
#pragma once

#include "runtime/Status.h"
#include "runtime/data/InputFile.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gradc::rt {

/// A range of a file, or of an image of one in memory. Copies share the open file, which stays
/// readable when it is renamed or deleted meanwhile. Reading goes through the system, never through
/// a mapping: of a file that is cut short the rest is an error, not a signal, and what was read is
/// not resident. Safe to read from any thread.
class FileBytes {
public:
  FileBytes() = default;
  /// `image` is the caller's, and outlives all copies.
  explicit FileBytes(std::span<const std::byte> image)
      : image_(image.data()), size_(image.size()) {}
  explicit FileBytes(InputFile file)
      : file_(std::make_shared<const InputFile>(std::move(file))), size_(file_->size()) {}

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// `count` bytes from `first` on, which are in the range.
  FileBytes subspan(uint64_t first, uint64_t count) const;

  /// Reads the first bytes, as many as fill `into`; there are as many in the range.
  Status read(std::span<std::byte> into) const;

private:
  std::shared_ptr<const InputFile> file_; ///< null: an image
  const std::byte *image_ = nullptr;
  uint64_t offset_ = 0, size_ = 0;
};

} // namespace gradc::rt

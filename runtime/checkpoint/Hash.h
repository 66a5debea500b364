// XXH3-128 over a stream of bytes: what checkpoints use to tell a sound file from a damaged one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace gradc::rt {

/// Size and content hash of a file.
struct FileDigest {
  uint64_t bytes = 0;
  std::string hash; ///< 32 lower-case hexadecimal digits
};

/// Incremental hash; `digest()` may be asked at any time and does not disturb the stream.
class Hasher {
public:
  Hasher();
  Hasher(Hasher &&) noexcept;
  Hasher &operator=(Hasher &&) noexcept;
  ~Hasher();

  void update(const void *data, size_t size);
  FileDigest digest() const;

private:
  struct State;
  std::unique_ptr<State> state_;
  uint64_t bytes_ = 0;
};

FileDigest digestOf(std::span<const std::byte> bytes);

} // namespace gradc::rt

// Wraps xxHash, compiled into this file so that executables need no shared xxHash library.
#include "runtime/checkpoint/Hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradc::rt {

struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }
Hasher::Hasher(Hasher &&) noexcept = default;
Hasher &Hasher::operator=(Hasher &&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::update(const void *data, size_t size) {
  XXH3_128bits_update(&state_->xxh, data, size);
  bytes_ += size;
}

FileDigest Hasher::digest() const {
  XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {bytes_, fmt::format("{:016x}{:016x}", hash.high64, hash.low64)};
}

FileDigest digestOf(std::span<const std::byte> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {bytes.size(), fmt::format("{:016x}{:016x}", hash.high64, hash.low64)};
}

} // namespace gradc::rt

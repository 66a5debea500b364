// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) and what is
// drawn from it.
#include "runtime/Random.h"

#include <cmath>
#include <numbers>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gradc::rt {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * counter[0];
    uint64_t product1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, std::string_view name)
    : seed_(seed), stream_(XXH3_64bits(name.data(), name.size())) {}

std::array<uint64_t, 2> RandomStream::bits(uint64_t index) const {
  auto words =
      philox({uint32_t(index), uint32_t(index >> 32), uint32_t(stream_), uint32_t(stream_ >> 32)},
             {uint32_t(seed_), uint32_t(seed_ >> 32)});
  return {uint64_t(words[1]) << 32 | words[0], uint64_t(words[3]) << 32 | words[2]};
}

std::array<double, 2> RandomStream::uniforms(uint64_t index) const {
  // The middle of one of 2^52 equal intervals: never 0, whose logarithm is infinite, and never 1.
  auto toUniform = [](uint64_t value) { return (double(value >> 12) + 0.5) * 0x1p-52; };
  auto words = bits(index);
  return {toUniform(words[0]), toUniform(words[1])};
}

std::array<double, 2> RandomStream::normals(uint64_t index) const {
  auto [u, v] = uniforms(index);
  double radius = std::sqrt(-2 * std::log(u));
  double angle = 2 * std::numbers::pi * v;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

} // namespace gradc::rt

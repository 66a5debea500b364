// Counter-based random numbers: a number is a pure function of (seed, stream, index), so that they
// can be drawn in any order, by any number of threads, and again after an interruption.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gradc::rt {

/// Philox4x32 with ten rounds: the 128 bits that belong to a counter under a key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// An independent sequence for each (seed, name).
class RandomStream {
public:
  RandomStream(uint64_t seed, std::string_view name);

  /// The bits at `index`.
  std::array<uint64_t, 2> bits(uint64_t index) const;
  /// Two independent numbers, uniform in (0, 1).
  std::array<double, 2> uniforms(uint64_t index) const;
  /// Two independent standard normal numbers.
  std::array<double, 2> normals(uint64_t index) const;

private:
  uint64_t seed_;
  uint64_t stream_;
};

} // namespace gradc::rt

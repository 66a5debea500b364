// The counter-based random numbers of `uniform` nodes, defined once for all emitters.
//
// Philox4x32-10 turns a counter of four words under a key of two into four random words. Element e
// takes word (e / 8) % 4 of the counter numbered (e / 32) * 8 + e % 8: so eight (sixteen) lanes of
// one vector instruction sequence serve 32 (64) consecutive elements.
#pragma once

#include <array>
#include <cstdint>

namespace gradc::row {

inline constexpr uint32_t philoxMultiplier0 = 0xd2511f53, philoxMultiplier1 = 0xcd9e8d57;
inline constexpr uint32_t philoxKeyStep0 = 0x9e3779b9, philoxKeyStep1 = 0xbb67ae85;
inline constexpr int philoxRounds = 10;
/// What the stream of a use of random numbers is multiplied by before it is added to the seed: uses
/// have keys of their own.
inline constexpr uint32_t philoxStreamStep = 0x85ebca6b;
/// Elements that share a group of `philoxLanes` counters.
inline constexpr int64_t philoxGroup = 32, philoxLanes = 8;

inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint32_t key0,
                                      uint32_t key1) {
  for (int round = 0; round < philoxRounds; ++round) {
    uint64_t product0 = uint64_t{philoxMultiplier0} * counter[0];
    uint64_t product1 = uint64_t{philoxMultiplier1} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += philoxKeyStep0;
    key1 += philoxKeyStep1;
  }
  return counter;
}

/// The value of a `uniform` node at global element index `element`: the key is (seed, stream), the
/// counter (64-bit number, step, 0); the upper 24 bits of the word make the fraction.
inline float philoxUniform(uint32_t seed, uint32_t step, uint32_t stream, uint64_t element) {
  uint64_t number = element / philoxGroup * philoxLanes + element % philoxLanes;
  std::array<uint32_t, 4> words = philox(
      {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), step, 0}, seed, stream);
  return static_cast<float>(words[element / philoxLanes % 4] >> 8) * 0x1p-24f;
}

} // namespace gradc::row

// A shuffle that is computed, not stored: position p of an epoch maps to item permute(p).
//
// A Feistel network is a bijection on 2h-bit numbers whatever its round function is. The smallest
// such power of four that holds all items is less than four times too large (or is 4); a result
// outside [0, size) is put through the network again until it falls inside ("cycle walking"), which
// keeps the map a bijection on [0, size). Only integer arithmetic defined here is used: the order
// is the same on every machine and with every standard library.
#pragma once

#include <array>
#include <cstdint>

namespace gradc::rt {

/// The finaliser of splitmix64: each input bit reaches every output bit.
inline uint64_t mixBits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// A bijection on [0, size), chosen by (seed, epoch). `size` is at least 1.
class Permutation {
public:
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch) : size_(size) {
    while (halfBits_ < 32 && (uint64_t(1) << (2 * halfBits_)) < size)
      ++halfBits_;
    uint64_t state = mixBits(seed + golden) ^ mixBits(~epoch);
    for (uint64_t &key : keys_)
      key = mixBits(state += golden);
  }

  uint64_t operator()(uint64_t position) const {
    do
      position = permuteOnce(position);
    while (position >= size_);
    return position;
  }

private:
  static constexpr uint64_t golden = 0x9e3779b97f4a7c15u;

  uint64_t permuteOnce(uint64_t value) const {
    uint64_t mask = (uint64_t(1) << halfBits_) - 1;
    uint64_t left = value >> halfBits_, right = value & mask;
    for (uint64_t key : keys_) {
      uint64_t next = left ^ (mixBits(right + key) & mask);
      left = right;
      right = next;
    }
    return left << halfBits_ | right;
  }

  uint64_t size_;
  unsigned halfBits_ = 1;
  std::array<uint64_t, 8> keys_;
};

} // namespace gradc::rt

// The narrow floating-point types of GPUs: their bits to f32 and back, to the nearest number, ties
// to even.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace gradc::rt::emulator {

/// Bits of a positive type of `exponentBits` and `mantissaBits`; numbers beyond `most` become it.
template <int exponentBits, int mantissaBits>
uint32_t encodeNarrow(float value, uint32_t most, uint32_t nan) {
  uint32_t sign = std::signbit(value) ? uint32_t(1) << (exponentBits + mantissaBits) : 0;
  if (std::isnan(value))
    return sign | nan;
  constexpr int leastExponent = 2 - (1 << (exponentBits - 1));
  double magnitude = std::fabs(value);
  if (std::isinf(value))
    return sign | most;
  int exponent = magnitude == 0 ? leastExponent : std::max(std::ilogb(magnitude), leastExponent);
  // A normal number's leading bit carries into the exponent, as does rounding up to the next one.
  auto steps = uint32_t(std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent)));
  return sign | std::min(most, (uint32_t(exponent - leastExponent) << mantissaBits) + steps);
}

inline uint16_t toF16(float value) { return uint16_t(encodeNarrow<5, 10>(value, 0x7c00, 0x7fff)); }
inline float fromF16(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, sign = uint32_t(bits & 0x8000) << 16;
  if (magnitude >= 0x0f800000)
    return std::bit_cast<float>(sign | magnitude | 0x7f800000);
  // The exponent's bias is 15 there and 127 here; the product is exact for subnormal numbers too.
  return std::bit_cast<float>(sign |
                              std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
}

inline uint16_t toBf16(float value) {
  if (std::isnan(value))
    return 0x7fff;
  auto bits = std::bit_cast<uint32_t>(value);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float fromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// Larger numbers and infinity become the largest, 448.
inline uint8_t toE4m3(float value) { return uint8_t(encodeNarrow<4, 3>(value, 0x7e, 0x7f)); }
inline float fromE4m3(uint8_t bits) {
  float sign = bits & 0x80 ? -1.f : 1.f;
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if (exponent == 15 && mantissa == 7)
    return std::bit_cast<float>(0x7fffffff);
  return sign * (exponent == 0 ? std::ldexp(float(mantissa), -9)
                               : std::ldexp(float(8 + mantissa), exponent - 10));
}

/// Larger numbers and infinity become the largest, 57344.
inline uint8_t toE5m2(float value) { return uint8_t(encodeNarrow<5, 2>(value, 0x7b, 0x7f)); }
inline float fromE5m2(uint8_t bits) { return fromF16(uint16_t(bits << 8)); }

} // namespace gradc::rt::emulator

// Elements of matrices by GradcType: any of its types to f32, and back to those that results have.
#pragma once

#include <cstddef>

#include "runtime/Abi.h"
#include "runtime/emulator/Numbers.h"

namespace gradc::rt::emulator {

/// 0 of what is no type.
inline int64_t bytesOf(int64_t type) {
  switch (type) {
  case GRADC_F32:
    return 4;
  case GRADC_BF16:
  case GRADC_F16:
    return 2;
  case GRADC_F8E4M3:
  case GRADC_F8E5M2:
    return 1;
  default:
    return 0;
  }
}

inline float load(const std::byte *matrix, int64_t type, int64_t index) {
  switch (type) {
  case GRADC_BF16:
    return fromBf16(reinterpret_cast<const uint16_t *>(matrix)[index]);
  case GRADC_F16:
    return fromF16(reinterpret_cast<const uint16_t *>(matrix)[index]);
  case GRADC_F8E4M3:
    return fromE4m3(reinterpret_cast<const uint8_t *>(matrix)[index]);
  case GRADC_F8E5M2:
    return fromE5m2(reinterpret_cast<const uint8_t *>(matrix)[index]);
  default:
    return reinterpret_cast<const float *>(matrix)[index];
  }
}

/// Rounds to f32, bf16 or f16.
inline void store(std::byte *matrix, int64_t type, int64_t index, float value) {
  if (type == GRADC_BF16)
    reinterpret_cast<uint16_t *>(matrix)[index] = toBf16(value);
  else if (type == GRADC_F16)
    reinterpret_cast<uint16_t *>(matrix)[index] = toF16(value);
  else
    reinterpret_cast<float *>(matrix)[index] = value;
}

/// 10 bits of mantissa, to nearest even; what is not finite stays.
inline float roundToTf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (!std::isfinite(value))
    return value;
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t(0x1fff));
}

} // namespace gradc::rt::emulator

// Scalar instructions that the host lacks. Approximations of a GPU have errors of some units in the
// last place that differ between its generations; here they are the nearest f32, the best that any
// of them may give.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Numbers.h"

#include <cfloat>
#include <cmath>

namespace gradc::rt::emulator {
namespace {

/// Zero of the same sign where the number is subnormal.
float flush(float value) { return std::fabs(value) < FLT_MIN ? std::copysign(0.f, value) : value; }

int32_t saturated(float value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p31f)
    return INT32_MAX;
  return value < -0x1p31f ? INT32_MIN : int32_t(value);
}

uint32_t pair(uint16_t high, uint16_t low) { return uint32_t(high) << 16 | low; }
uint16_t bytePair(uint8_t high, uint8_t low) { return uint16_t(high << 8 | low); }
float highF16(I numbers) { return fromF16(uint16_t(uint32_t(numbers) >> 16)); }
float lowF16(I numbers) { return fromF16(uint16_t(numbers)); }

} // namespace

extern "C" {

F gradc_emulated_ex2(F x) { return F(std::exp2(double(x))); }
F gradc_emulated_ex2_ftz(F x) { return flush(gradc_emulated_ex2(flush(x))); }
F gradc_emulated_lg2(F x) { return F(std::log2(double(x))); }
F gradc_emulated_lg2_ftz(F x) { return flush(gradc_emulated_lg2(flush(x))); }
F gradc_emulated_rsqrt(F x) { return F(1 / std::sqrt(double(x))); }
F gradc_emulated_rsqrt_ftz(F x) { return flush(gradc_emulated_rsqrt(flush(x))); }
F gradc_emulated_rcp(F x) { return 1 / x; }
F gradc_emulated_rcp_ftz(F x) { return flush(1 / flush(x)); }
F gradc_emulated_sqrt(F x) { return std::sqrt(x); }
F gradc_emulated_sqrt_ftz(F x) { return flush(std::sqrt(flush(x))); }
F gradc_emulated_div(F x, F y) { return x / y; }
F gradc_emulated_div_ftz(F x, F y) { return flush(flush(x) / flush(y)); }
F gradc_emulated_sin(F x) { return F(std::sin(double(x))); }
F gradc_emulated_cos(F x) { return F(std::cos(double(x))); }
F gradc_emulated_saturate(F x) { return x > 0 ? std::fmin(x, 1.f) : 0.f; }
F gradc_emulated_fma(F x, F y, F z) { return std::fma(x, y, z); }
F gradc_emulated_fma_ftz(F x, F y, F z) { return flush(std::fma(flush(x), flush(y), flush(z))); }
F gradc_emulated_fma_down(F x, F y, F z) {
  // The product is exact in f64; the sum's own rounding is undone by its error.
  double product = double(x) * double(y), sum = product + double(z);
  double part = sum - product, error = (product - (sum - part)) + (double(z) - part);
  F nearest = F(sum);
  bool isAbove = double(nearest) > sum || (double(nearest) == sum && error < 0);
  return isAbove ? std::nextafter(nearest, -INFINITY) : nearest;
}
F gradc_emulated_max_ftz(F x, F y) { return std::fmax(flush(x), flush(y)); }
F gradc_emulated_min_ftz(F x, F y) { return std::fmin(flush(x), flush(y)); }
F gradc_emulated_max_nan(F x, F y) { return std::isunordered(x, y) ? NAN : std::fmax(x, y); }
F gradc_emulated_min_nan(F x, F y) { return std::isunordered(x, y) ? NAN : std::fmin(x, y); }

I gradc_emulated_to_int(F x) { return saturated(std::nearbyint(x)); }
I gradc_emulated_to_int_towards_zero(F x) { return saturated(std::trunc(x)); }
I gradc_emulated_to_int_down(F x) { return saturated(std::floor(x)); }
I gradc_emulated_permute_bytes(I low, I high, I selector) {
  uint64_t bytes = uint64_t(uint32_t(high)) << 32 | uint32_t(low);
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t choice = uint32_t(selector) >> (4 * i) & 15;
    uint32_t byte = uint32_t(bytes >> (8 * (choice & 7))) & 255;
    if (choice & 8) // its sign, repeated
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return I(result);
}

H gradc_emulated_to_bf16(F x) { return toBf16(x); }
H gradc_emulated_to_f16(F x) { return toF16(x); }
I gradc_emulated_to_bf16_pair(F high, F low) { return I(pair(toBf16(high), toBf16(low))); }
I gradc_emulated_to_f16_pair(F high, F low) { return I(pair(toF16(high), toF16(low))); }
I gradc_emulated_to_tf32(F x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return std::isfinite(x) ? I((bits + 0x1000) & ~uint32_t(0x1fff)) : I(bits);
}
H gradc_emulated_to_e4m3_pair(F high, F low) { return bytePair(toE4m3(high), toE4m3(low)); }
H gradc_emulated_to_e5m2_pair(F high, F low) { return bytePair(toE5m2(high), toE5m2(low)); }
H gradc_emulated_f16_to_e4m3_pair(I numbers) {
  return bytePair(toE4m3(highF16(numbers)), toE4m3(lowF16(numbers)));
}
H gradc_emulated_f16_to_e5m2_pair(I numbers) {
  return bytePair(toE5m2(highF16(numbers)), toE5m2(lowF16(numbers)));
}
I gradc_emulated_from_e4m3_pair(H numbers) {
  return I(pair(toF16(fromE4m3(uint8_t(numbers >> 8))), toF16(fromE4m3(uint8_t(numbers)))));
}
I gradc_emulated_from_e5m2_pair(H numbers) {
  return I(pair(toF16(fromE5m2(uint8_t(numbers >> 8))), toF16(fromE5m2(uint8_t(numbers)))));
}

// Compilers call this to round to bf16 where the processor cannot; not every libgcc has it. The
// result is in the low half of a vector register, as that of a function of f32 is. (One that is
// declared to give a __bf16 is compiled to a call of itself.)
F __truncsfbf2(F x) { return std::bit_cast<F>(uint32_t(toBf16(x))); }

} // extern "C"

} // namespace gradc::rt::emulator

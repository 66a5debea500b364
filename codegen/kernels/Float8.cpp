// See Float8.h.
//
// A code is sign, exponent and mantissa from the top, as f32 is: moved to the same place in 32 bits
// it is the number divided by 2 to the difference of the exponents' biases, subnormal numbers too.
// Back, f32's own rounding serves: of the bits by adding half a unit, of numbers below the format's
// normal ones by adding a number whose unit is the format's smallest.
#include "codegen/kernels/Float8.h"

#include <cmath>

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen {

namespace {

struct Format {
  int mantissaBits, lowestExponent; ///< of a normal number
  double largest;
  int dropped() const { return 23 - mantissaBits; } ///< bits of f32's mantissa
  int bias() const { return 1 - lowestExponent; }
};

constexpr int f32Bias = 127;

Format formatOf(Dtype dtype) {
  return dtype == Dtype::f8e4m3 ? Format{3, -6, 448} : Format{2, -14, 57344};
}

/// 32-bit integer arithmetic on values shaped as `like`.
class Bits {
public:
  Bits(const Vectors &v, Value like) : v(v), type(v.shapedAs(v.i32, like)) {}

  Value constant(int64_t value) const { return v.constant(type, static_cast<double>(value)); }
  Value add(Value x, Value y) const { return arith::AddIOp::create(v.builder, v.loc, x, y); }
  Value sub(Value x, int64_t y) const {
    return arith::SubIOp::create(v.builder, v.loc, x, constant(y));
  }
  Value both(Value x, int64_t y) const {
    return arith::AndIOp::create(v.builder, v.loc, x, constant(y));
  }
  Value either(Value x, Value y) const { return arith::OrIOp::create(v.builder, v.loc, x, y); }
  Value up(Value x, int bits) const {
    return arith::ShLIOp::create(v.builder, v.loc, x, constant(bits));
  }
  Value down(Value x, int bits) const {
    return arith::ShRUIOp::create(v.builder, v.loc, x, constant(bits));
  }
  Value select(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(v.builder, v.loc, condition, x, y);
  }
  Value of(Value real) const { return arith::BitcastOp::create(v.builder, v.loc, type, real); }
  Value asReal(Value x) const {
    return arith::BitcastOp::create(v.builder, v.loc, v.shapedAs(v.f32, x), x);
  }

private:
  const Vectors &v;
  Type type;
};

constexpr int64_t magnitudeOfCode = 0x7f, signOfCode = 0x80, nanOfCode = 0x7f;
constexpr int64_t magnitudeOfF32 = 0x7fffffff, quietNan = 0x7fc00000;

} // namespace

Value widenFloat8(const Vectors &v, Dtype dtype, Value code) {
  Format format = formatOf(dtype);
  Bits bits(v, code);
  Value wide = arith::ExtUIOp::create(v.builder, v.loc, v.shapedAs(v.i32, code), code);
  Value magnitude = bits.both(wide, magnitudeOfCode);
  Value moved = bits.asReal(bits.up(magnitude, format.dropped()));
  Value scale = v.constant(moved.getType(), std::ldexp(1.0, f32Bias - format.bias()));
  Value number = bits.of(v.mul(moved, scale));
  // The codes above the largest number: NaN, and in f8e5m2 infinity before it, whose bits f32 has
  // at the same place.
  int64_t lastNumber = dtype == Dtype::f8e4m3 ? 0x7e : 0x7b;
  Value isNumber = arith::CmpIOp::create(v.builder, v.loc, arith::CmpIPredicate::ule, magnitude,
                                         bits.constant(lastNumber));
  Value special = dtype == Dtype::f8e4m3 ? bits.constant(quietNan)
                                         : bits.either(bits.up(magnitude, format.dropped()),
                                                       bits.constant(int64_t{0xff} << 23));
  Value sign = bits.up(bits.both(wide, signOfCode), 24);
  return bits.asReal(bits.either(bits.select(isNumber, number, special), sign));
}

Value narrowFloat8(const Vectors &v, Dtype dtype, Value value) {
  Format format = formatOf(dtype);
  Bits bits(v, value);
  Value all = bits.of(value);
  Value magnitude =
      v.limitAbove(bits.asReal(bits.both(all, magnitudeOfF32)), format.largest); // a NaN stays
  // Normal numbers: half a unit (one less where the kept part is even) carries exactly when the
  // number is to be rounded up.
  Value kept = bits.of(magnitude);
  Value odd = bits.both(bits.down(kept, format.dropped()), 1);
  Value half = bits.add(odd, bits.constant((int64_t{1} << (format.dropped() - 1)) - 1));
  Value normal = bits.sub(bits.down(bits.add(kept, half), format.dropped()),
                          int64_t{f32Bias - format.bias()} << format.mantissaBits);
  // Smaller ones: f32's unit at `unitPlace` is the format's smallest number.
  double unitPlace = std::ldexp(1.0, format.lowestExponent - format.mantissaBits + 23);
  Value place = v.constant(magnitude.getType(), unitPlace);
  Value subnormal =
      arith::SubIOp::create(v.builder, v.loc, bits.of(v.add(magnitude, place)), bits.of(place));
  Value least = v.constant(magnitude.getType(), std::ldexp(1.0, format.lowestExponent));
  Value isSmall =
      arith::CmpFOp::create(v.builder, v.loc, arith::CmpFPredicate::OLT, magnitude, least);
  Value isNan = arith::CmpFOp::create(v.builder, v.loc, arith::CmpFPredicate::UNO, value, value);
  Value code =
      bits.select(isNan, bits.constant(nanOfCode), bits.select(isSmall, subnormal, normal));
  Value sign = bits.both(bits.down(all, 24), signOfCode);
  return arith::TruncIOp::create(v.builder, v.loc, v.shapedAs(v.builder.getI8Type(), value),
                                 bits.either(code, sign));
}

} // namespace gradc::codegen

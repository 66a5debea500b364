// Scalar instructions: approximations, roundings, conversions of narrow types.
#include "tests/emulator/LoadedModule.h"

#include "runtime/emulator/Numbers.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

namespace gradc {
namespace {

/// What the instructions in `body` leave in %r (i32) for each %x, and for %y and %z, the two
/// arguments that follow it in the list (cyclically).
std::vector<uint32_t> evaluate(const std::string &body, const std::vector<float> &arguments) {
  LoadedModule module(R"(
define ptx_kernel void @scalar(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread1 = add i32 %thread, 1
  %thread2 = add i32 %thread, 2
  %second = urem i32 %thread1, %threads
  %third = urem i32 %thread2, %threads
  %p = getelementptr float, ptr addrspace(1) %in, i32 %thread
  %x = load float, ptr addrspace(1) %p, align 4
  %q = getelementptr float, ptr addrspace(1) %in, i32 %second
  %y = load float, ptr addrspace(1) %q, align 4
  %s = getelementptr float, ptr addrspace(1) %in, i32 %third
  %z = load float, ptr addrspace(1) %s, align 4
)" + body + R"(
  %o = getelementptr i32, ptr addrspace(1) %out, i32 %thread
  store i32 %r, ptr addrspace(1) %o, align 4
  ret void
}
)");
  std::vector<uint32_t> out(arguments.size(), 0xdddddddd);
  expectOk(Launch(module, "scalar", 1, static_cast<int64_t>(arguments.size()))
               .reads(arguments)
               .writes(out)
               .run());
  return out;
}

/// A call of floats that gives a float.
std::vector<float> call(const std::string &intrinsic, int count,
                        const std::vector<float> &arguments) {
  const char *lists[] = {"float %x", "float %x, float %y", "float %x, float %y, float %z"};
  std::vector<float> result;
  for (uint32_t bits : evaluate("%f = call float @llvm.nvvm." + intrinsic + "(" + lists[count - 1] +
                                    ")\n  %r = bitcast float %f to i32",
                                arguments))
    result.push_back(std::bit_cast<float>(bits));
  return result;
}

const float infinity = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();
const std::vector<float> numbers{0.f,       -0.f,     1.f,    -1.f,      0.3f,   1.7f,
                                 -2.5f,     3.1e-3f,  25.25f, -9e4f,     1e-39f, -1e-39f,
                                 1e38f,     infinity, nan,    -infinity, 6.5e4f, 449.f,
                                 6.103e-5f, 0.0021f,  17.f,   -0.75f,    2.f,    0.99999994f};

/// Equal numbers; any NaN for a NaN.
void expectSame(float value, double expected, const std::string &where) {
  if (std::isnan(expected))
    EXPECT_TRUE(std::isnan(value)) << where << ": " << value;
  else
    EXPECT_EQ(value, static_cast<float>(expected)) << where;
}

double flushed(double x) { return std::abs(x) < FLT_MIN ? std::copysign(0., x) : x; }

TEST(EmulatorArithmetic, OneArgument) {
  struct Case {
    const char *intrinsic;
    double (*expected)(double);
    bool flushes;
  };
  const Case cases[] = {
      {"ex2.approx.f32", [](double x) { return std::exp2(x); }, false},
      {"ex2.approx.ftz.f32", [](double x) { return std::exp2(x); }, true},
      {"lg2.approx.f", [](double x) { return std::log2(x); }, false},
      {"lg2.approx.ftz.f", [](double x) { return std::log2(x); }, true},
      {"rsqrt.approx.f", [](double x) { return 1 / std::sqrt(x); }, false},
      {"rsqrt.approx.ftz.f", [](double x) { return 1 / std::sqrt(x); }, true},
      {"rcp.rn.f", [](double x) { return 1 / x; }, false},
      {"rcp.approx.ftz.f", [](double x) { return 1 / x; }, true},
      {"sqrt.rn.f", [](double x) { return std::sqrt(x); }, false},
      {"sqrt.approx.ftz.f", [](double x) { return std::sqrt(x); }, true},
      {"sin.approx.f", [](double x) { return std::sin(x); }, false},
      {"cos.approx.f", [](double x) { return std::cos(x); }, false},
      {"saturate.f", [](double x) { return x > 0 ? std::min(x, 1.) : 0.; }, false},
  };
  for (const Case &test : cases) {
    std::vector<float> results = call(test.intrinsic, 1, numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      double x = test.flushes ? flushed(numbers[i]) : numbers[i], expected = test.expected(x);
      expectSame(results[i], test.flushes ? flushed(expected) : expected,
                 std::string(test.intrinsic) + " of " + std::to_string(numbers[i]));
    }
  }
}

TEST(EmulatorArithmetic, SeveralArguments) {
  std::size_t count = numbers.size();
  auto expect = [&](const char *intrinsic, int arguments, bool flushes,
                    double (*expected)(double, double, double)) {
    std::vector<float> results = call(intrinsic, arguments, numbers);
    for (std::size_t i = 0; i < count; ++i) {
      double x = numbers[i], y = numbers[(i + 1) % count], z = numbers[(i + 2) % count];
      double wanted =
          flushes ? flushed(static_cast<float>(expected(flushed(x), flushed(y), flushed(z))))
                  : expected(x, y, z);
      expectSame(results[i], wanted, std::string(intrinsic) + " at " + std::to_string(i));
    }
  };
  auto quotient = [](double x, double y, double) { return x / y; };
  expect("div.rn.f", 2, false, quotient);
  expect("div.full", 2, false, quotient);
  expect("div.approx.ftz.f", 2, true, quotient);
  // Exact products and a single rounding: f64 rounds once before, far below f32's unit here.
  auto multiplyAdd = [](double x, double y, double z) {
    return double(std::fma(float(x), float(y), float(z)));
  };
  expect("fma.rn.f", 3, false, multiplyAdd);
  expect("fma.rn.ftz.f", 3, true, multiplyAdd);
  expect("fmax.ftz.f", 2, true, [](double x, double y, double) { return std::fmax(x, y); });
  expect("fmin.ftz.f", 2, true, [](double x, double y, double) { return std::fmin(x, y); });
  expect("fmax.nan.f", 2, false, [](double x, double y, double) {
    return std::isnan(x) || std::isnan(y) ? double(nan) : std::fmax(x, y);
  });
  expect("fmin.nan.f", 2, false, [](double x, double y, double) {
    return std::isnan(x) || std::isnan(y) ? double(nan) : std::fmin(x, y);
  });
}

TEST(EmulatorArithmetic, FmaRoundedDown) {
  std::vector<float> arguments{1.f, 1.f, 0x1p-30f, -1.f, 1.f, -0x1p-30f, 3.f, 0.1f, 0.7f};
  std::vector<float> results = call("fma.rm.f", 3, arguments);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::size_t n = arguments.size();
    long double exact =
        static_cast<long double>(arguments[i]) * arguments[(i + 1) % n] + arguments[(i + 2) % n];
    EXPECT_LE(static_cast<long double>(results[i]), exact) << i;
    EXPECT_GT(static_cast<long double>(std::nextafter(results[i], infinity)), exact) << i;
  }
}

TEST(EmulatorArithmetic, Integers) {
  auto integers = [&](const std::string &intrinsic) {
    return evaluate("%r = call i32 @llvm.nvvm." + intrinsic + "(float %x)", numbers);
  };
  std::vector<uint32_t> nearest = integers("f2i.rn"), zero = integers("f2i.rz"),
                        down = integers("f2i.rm");
  auto clamped = [](double x) {
    return std::isnan(x) ? 0 : static_cast<int32_t>(std::clamp(x, -2147483648., 2147483647.));
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(static_cast<int32_t>(nearest[i]), clamped(std::nearbyint(numbers[i])));
    EXPECT_EQ(static_cast<int32_t>(zero[i]), clamped(std::trunc(numbers[i])));
    EXPECT_EQ(static_cast<int32_t>(down[i]), clamped(std::floor(numbers[i])));
  }
  std::vector<uint32_t> bytes =
      evaluate("%r = call i32 @llvm.nvvm.prmt(i32 u0x83828180, i32 u0x07060504, i32 u0x9a70)", {1});
  EXPECT_EQ(bytes[0], 0xffff0780u); // byte 0, byte 7, the signs of bytes 2 and 1
}

/// The nearest of all numbers that a narrow type has, ties to the even one.
uint32_t nearestCode(float x, int codes, float (*decode)(uint32_t)) {
  double most = 0;
  for (int code = 0; code < codes; ++code)
    if (float number = decode(code); std::isfinite(number))
      most = std::max<double>(most, number);
  double magnitude = std::min<double>(std::abs(x), most);
  int best = 0;
  for (int code = 1; code < codes; ++code) {
    double number = decode(code), old = decode(best);
    if (!std::isfinite(number))
      continue;
    double gain = std::abs(old - magnitude) - std::abs(number - magnitude);
    if (gain > 0 || (gain == 0 && code % 2 == 0))
      best = code;
  }
  return best | (std::signbit(x) ? codes : 0);
}

TEST(EmulatorArithmetic, Float8) {
  using namespace rt::emulator;
  auto expect = [](const std::string &name, float (*decode)(uint32_t)) {
    std::string body = "%both = call i16 @llvm.nvvm.ff.to." + name +
                       "x2.rn(float %x, float %y)\n  %r = zext i16 %both to i32";
    std::vector<uint32_t> codes = evaluate(body, numbers);
    std::vector<uint32_t> back =
        evaluate("%both = call i16 @llvm.nvvm.ff.to." + name +
                     "x2.rn(float %x, float %y)\n  %h = call <2 x half> @llvm.nvvm." + name +
                     "x2.to.f16x2.rn(i16 %both)\n  %r = bitcast <2 x half> %h to i32",
                 numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      float x = numbers[i], y = numbers[(i + 1) % numbers.size()];
      if (!std::isnan(x))
        EXPECT_EQ(codes[i] >> 8, nearestCode(x, 128, decode)) << name << " of " << x;
      if (!std::isnan(y))
        EXPECT_EQ(codes[i] & 255, nearestCode(y, 128, decode)) << name << " of " << y;
      expectSame(fromF16(static_cast<uint16_t>(back[i] >> 16)), decode(codes[i] >> 8), name);
      expectSame(fromF16(static_cast<uint16_t>(back[i])), decode(codes[i] & 255), name);
    }
  };
  expect("e4m3", [](uint32_t code) { return fromE4m3(static_cast<uint8_t>(code)); });
  expect("e5m2", [](uint32_t code) { return fromE5m2(static_cast<uint8_t>(code)); });
}

TEST(EmulatorArithmetic, HalvesAndTf32) {
  using namespace rt::emulator;
  std::vector<uint32_t> bf16 = evaluate("%h = call bfloat @llvm.nvvm.f2bf16.rn(float %x)\n  %i = "
                                        "bitcast bfloat %h to i16\n  %r = zext "
                                        "i16 %i to i32",
                                        numbers);
  // The instruction, and arithmetic of bf16, which the host does in f32 and rounds.
  std::vector<uint32_t> rounded = evaluate(
      "%h = fptrunc float %x to bfloat\n  %i = bitcast bfloat %h to i16\n  %r = zext i16 %i to i32",
      numbers);
  std::vector<uint32_t> doubled = evaluate(
      "%h = fptrunc float %x to bfloat\n  %d = fadd bfloat %h, %h\n  %i = bitcast bfloat %d to "
      "i16\n  %r = zext i16 %i to i32",
      numbers);
  std::vector<uint32_t> truncated = evaluate(
      "%h = fptrunc float %x to half\n  %i = bitcast half %h to i16\n  %r = zext i16 %i to i32",
      numbers);
  std::vector<uint32_t> f16 = evaluate("%h = call half @llvm.nvvm.f2f16.rn(float %x)\n  %i = "
                                       "bitcast half %h to i16\n  %r = zext i16 "
                                       "%i to i32",
                                       numbers);
  std::vector<uint32_t> pair = evaluate(
      "%h = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %x, float %y)\n  %r = bitcast <2 x "
      "bfloat> %h to i32",
      numbers);
  std::vector<uint32_t> tf32 = evaluate("%r = call i32 @llvm.nvvm.f2tf32.rna(float %x)", numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    float x = numbers[i], y = numbers[(i + 1) % numbers.size()];
    if (std::isnan(x) || std::isnan(y))
      continue;
    auto bits = std::bit_cast<uint32_t>(x);
    double unit = std::ldexp(1., std::ilogb(x) - 7), most = std::abs(x);
    if (std::isfinite(x) && most >= FLT_MIN) {
      EXPECT_EQ(fromBf16(static_cast<uint16_t>(bf16[i])), std::nearbyint(x / unit) * unit) << x;
      double tf32Unit = std::ldexp(1., std::ilogb(x) - 10);
      EXPECT_EQ(std::bit_cast<float>(tf32[i]), std::round(x / tf32Unit) * tf32Unit) << x;
    } else if (!std::isfinite(x)) {
      EXPECT_EQ(tf32[i], bits);
      EXPECT_EQ(fromBf16(static_cast<uint16_t>(bf16[i])), x);
    }
    EXPECT_EQ(bf16[i], rounded[i]) << x;
    EXPECT_EQ(fromBf16(static_cast<uint16_t>(doubled[i])),
              2 * fromBf16(static_cast<uint16_t>(rounded[i])))
        << x;
    EXPECT_EQ(f16[i], truncated[i]) << x;
    EXPECT_EQ(pair[i] >> 16, bf16[i]) << x;
    EXPECT_EQ(pair[i] & 0xffff, bf16[(i + 1) % numbers.size()]) << y;
  }
}

} // namespace
} // namespace gradc

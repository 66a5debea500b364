// The fp8 formats in compiled kernels, code by code: against tables and nearest numbers that are
// worked out here from the formats' definitions.
#include "codegen/cpu/RowProgram.h"
#include "ir/row/Builder.h"
#include "tests/numerics/RowHarness.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace {

using namespace gradc::row;
using gradc::codegen::CompiledKernel;
using gradc::codegen::CpuTarget;
using gradc::row::Builder;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Format {
  Dtype dtype;
  int mantissaBits, bias;
  uint8_t largestCode;
  NodeKind round;
};
const Format formats[] = {{Dtype::f8e4m3, 3, 7, 0x7e, NodeKind::roundF8E4M3},
                          {Dtype::f8e5m2, 2, 15, 0x7b, NodeKind::roundF8E5M2}};

/// By the definition: sign, exponent, mantissa; what lies above the largest is no number.
float valueOf(const Format &format, uint8_t code) {
  int magnitude = code & 0x7f, units = 1 << format.mantissaBits;
  int exponent = magnitude / units, mantissa = magnitude % units;
  double value = exponent == 0
                     ? std::ldexp(mantissa, 1 - format.bias - format.mantissaBits)
                     : std::ldexp(units + mantissa, exponent - format.bias - format.mantissaBits);
  if (magnitude > format.largestCode)
    value = format.dtype == Dtype::f8e5m2 && mantissa == 0 ? infinity : nan;
  return static_cast<float>(code & 0x80 ? -value : value);
}

/// The code of the nearest number, of two the even one, by looking at all.
uint8_t codeOf(const Format &format, float value) {
  uint8_t best = 0;
  for (int code = 0; code <= format.largestCode; ++code) {
    double error = std::fabs(std::fabs(double(value)) - valueOf(format, code));
    double least = std::fabs(std::fabs(double(value)) - valueOf(format, best));
    if (error < least || (error == least && code % 2 == 0))
      best = static_cast<uint8_t>(code);
  }
  if (std::fabs(value) >= valueOf(format, format.largestCode))
    best = format.largestCode;
  return best | (std::signbit(value) ? 0x80 : 0);
}

/// Every number, what lies halfway to the next and just beside it, numbers far too large and far
/// too small; of both signs. A multiple of no vector's lanes.
std::vector<float> interestingNumbers(const Format &format) {
  std::vector<float> numbers{0, 0x1p-149f, 0x1p-126f, 1e30f, 3.4e38f, infinity};
  for (int code = 0; code <= format.largestCode; ++code) {
    float number = valueOf(format, code);
    float next = code < format.largestCode ? valueOf(format, code + 1)
                                           : 2 * number - valueOf(format, code - 1);
    float half = (number + next) / 2;
    for (float x : {number, half, std::nextafter(half, 0.0f), std::nextafter(half, infinity)})
      numbers.push_back(x);
  }
  for (size_t i = 0, count = numbers.size(); i < count; ++i)
    numbers.push_back(-numbers[i]);
  while (numbers.size() % 8 != 5)
    numbers.push_back(1.0f);
  return numbers;
}

/// Runs a flat program from one buffer to another.
template <typename To, typename From>
std::vector<To> run(const Program &program, const CpuTarget &target, std::vector<From> input) {
  EXPECT_EQ(verify(program), "");
  CompiledKernel kernel(target,
                        [&](mlir::OpBuilder &builder, mlir::ModuleOp module, llvm::StringRef name) {
                          gradc::codegen::emitRowProgram(builder, module, program, name, target);
                        });
  std::vector<To> output(input.size());
  if (kernel)
    kernel.call({input.data(), output.data()}, static_cast<int64_t>(input.size()), 0);
  return output;
}

Program copy(Dtype from, Dtype to) {
  Builder b = Builder::flat();
  int32_t in = b.matrix(from), out = b.matrix(to);
  b.store(out, b.load(in));
  return b.take();
}

Program unary(NodeKind kind) {
  Program program = copy(Dtype::f32, Dtype::f32);
  NodeId y = program.addNode({kind, {program.effects[0].node, noNode, noNode}, 0, -1});
  program.effects[0].node = y;
  return program;
}

void expectFloats(const std::vector<float> &got, const std::vector<float> &want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (std::isnan(want[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i << " is " << got[i];
    else
      EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
          << i << ": " << got[i] << ", not " << want[i];
}

TEST(Float8, TheFormatsAreThoseOfTheirNames) {
  EXPECT_EQ(valueOf(formats[0], 0x7e), 448);
  EXPECT_EQ(valueOf(formats[0], 0x01), 0x1p-9f);
  EXPECT_EQ(valueOf(formats[0], 0x38), 1);
  EXPECT_TRUE(std::isnan(valueOf(formats[0], 0x7f)));
  EXPECT_EQ(valueOf(formats[1], 0x7b), 57344);
  EXPECT_EQ(valueOf(formats[1], 0x01), 0x1p-16f);
  EXPECT_EQ(valueOf(formats[1], 0x3c), 1);
  EXPECT_EQ(valueOf(formats[1], 0xfc), -infinity);
}

TEST(Float8, EveryCodeIsRead) {
  for (const Format &format : formats) {
    std::vector<uint8_t> codes;
    std::vector<float> want;
    for (int code = 0; code < 256 + 5; ++code) { // ends in a cut vector
      codes.push_back(static_cast<uint8_t>(code));
      want.push_back(valueOf(format, codes.back()));
    }
    for (const CpuTarget &target : gradc::codegen::hostTargets()) {
      SCOPED_TRACE(testing::Message() << name(format.dtype) << ", " << target.vectorBits);
      expectFloats(run<float>(copy(format.dtype, Dtype::f32), target, codes), want);
    }
  }
}

TEST(Float8, StoresTheNearestNumber) {
  for (const Format &format : formats) {
    std::vector<float> numbers = interestingNumbers(format);
    for (const CpuTarget &target : gradc::codegen::hostTargets()) {
      SCOPED_TRACE(testing::Message() << name(format.dtype) << ", " << target.vectorBits);
      auto codes = run<uint8_t>(copy(Dtype::f32, format.dtype), target, numbers);
      for (size_t i = 0; i < numbers.size(); ++i)
        EXPECT_EQ(codes[i], codeOf(format, numbers[i])) << numbers[i];
    }
  }
}

TEST(Float8, NanStaysOne) {
  for (const Format &format : formats)
    for (const CpuTarget &target : gradc::codegen::hostTargets())
      for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0x7fffffffu}) {
        std::vector<float> numbers(13, std::bit_cast<float>(bits));
        for (uint8_t code : run<uint8_t>(copy(Dtype::f32, format.dtype), target, numbers))
          EXPECT_TRUE(std::isnan(valueOf(format, code))) << int(code);
      }
}

/// In a kernel that keeps a value it has the bits that memory would have given back.
TEST(Float8, RoundingIsStoringAndReading) {
  for (const Format &format : formats) {
    std::vector<float> numbers = interestingNumbers(format), want;
    for (float number : numbers) {
      want.push_back(valueOf(format, codeOf(format, number)));
      EXPECT_EQ(roundTo(format.dtype, number), want.back()) << number;
    }
    EXPECT_TRUE(std::isnan(roundTo(format.dtype, nan)));
    for (const CpuTarget &target : gradc::codegen::hostTargets())
      expectFloats(run<float>(unary(format.round), target, numbers), want);
  }
}

TEST(Float8, ExponentPart) {
  std::vector<float> numbers{1,     1.5f,     -3,        0x1.fffffep5f, 0x1p-126f, 0x1p-127f, 0,
                             -0.0f, infinity, -infinity, 3.4e38f,       0.7f,      nan};
  std::vector<float> want{1, 1,        2,        32,       0x1p-126f, 0,       0,
                          0, infinity, infinity, 0x1p127f, 0.5f,      infinity};
  for (const CpuTarget &target : gradc::codegen::hostTargets())
    expectFloats(run<float>(unary(NodeKind::exponentPart), target, numbers), want);
  Program program = unary(NodeKind::exponentPart);
  std::vector<Array> arrays{Array(numbers.begin(), numbers.end()), Array(numbers.size(), 0.0)};
  evaluate(program, static_cast<int64_t>(numbers.size()), arrays);
  expectSame(arrays[1], Array(want.begin(), want.end()), "reference");
}

} // namespace

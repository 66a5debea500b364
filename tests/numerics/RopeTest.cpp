// Rotary embedding against complex multiplication in f64, in every type.
#include "codegen/cpu/Rope.h"

#include "ir/row/Evaluate.h"
#include "tests/numerics/CompiledKernel.h"
#include "tests/numerics/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

namespace {

using namespace gradc::codegen;
using gradc::row::Dtype;

struct Tables {
  std::vector<float> cosines, sines;
  Tables(int64_t positions, int64_t half) {
    for (int64_t t = 0; t < positions; ++t)
      for (int64_t i = 0; i < half; ++i) {
        double angle = t * std::pow(10000.0, -static_cast<double>(i) / half);
        cosines.push_back(std::cos(angle));
        sines.push_back(std::sin(angle));
      }
  }
};

/// Numbers of the dtype.
std::vector<float> randomFloats(int64_t count, Dtype dtype) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &x : out)
    x = static_cast<float>(gradc::row::roundTo(dtype, normal(random)));
  return out;
}

/// What a result may differ by: the products and their sum in f32, then one rounding to the dtype.
double boundOf(Dtype dtype, double want) {
  constexpr double inF32 = 2e-6;
  return dtype == Dtype::f32 ? inF32
                             : inF32 + gradc::row::unitRoundoff(dtype) * (std::fabs(want) + inF32);
}

/// Element d of a head of the token'th token.
int64_t place(const RopeSpec &s, const RopeSpec::Strides &to, int64_t token, int64_t head,
              int64_t d) {
  return token / s.seq * to.batch + token % s.seq * to.token + head * to.head + d;
}

std::vector<double> rotated(const RopeSpec &s, const std::vector<float> &x, int64_t tokens,
                            const Tables &tables) {
  std::vector<double> out;
  int64_t half = s.headDim / 2;
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t h = 0; h < s.heads; ++h) {
      std::vector<double> head(s.headDim);
      for (int64_t i = 0; i < half; ++i) {
        int64_t entry = token % s.seq * half + i;
        std::complex<double> turn(tables.cosines[entry], tables.sines[entry]);
        std::complex<double> pair(x[place(s, s.x, token, h, i)],
                                  x[place(s, s.x, token, h, i + half)]);
        pair *= s.inverse ? std::conj(turn) : turn;
        head[i] = pair.real();
        head[i + half] = pair.imag();
      }
      out.insert(out.end(), head.begin(), head.end());
    }
  return out;
}

std::vector<float> gather(const RopeSpec &s, const std::vector<float> &buffer, int64_t tokens) {
  std::vector<float> out;
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t d = 0; d < s.headDim; ++d)
        out.push_back(buffer[place(s, s.out, token, h, d)]);
  return out;
}

CompiledKernel compile(const RopeSpec &spec, const CpuTarget &target) {
  return CompiledKernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
    emitRope(m, name, spec, target);
  });
}

/// x turned to `out` or, where that is null, in its own place.
void run(const CompiledKernel &kernel, const RopeSpec &s, std::vector<float> &x, Tables &tables,
         std::vector<float> *out, int64_t tokens, bool reversed = false) {
  int64_t tasks = taskCount(s, tokens);
  std::vector<std::byte> from = gradc::row::encode(s.dtype, x), to;
  if (out)
    to = gradc::row::encode(s.dtype, *out);
  std::vector<std::byte> &result = out ? to : from;
  for (int64_t i = 0; i < tasks; ++i)
    kernel.call({from.data(), tables.cosines.data(), tables.sines.data(), result.data()}, tokens,
                reversed ? tasks - 1 - i : i);
  (out ? *out : x) = gradc::row::decode<float>(s.dtype, result);
}

void check(int64_t batch, int64_t seq, int64_t heads, int64_t headDim, bool inverse,
           Dtype dtype = Dtype::f32) {
  // x is a slice of wider tokens; out is [batch, heads, seq, headDim].
  int64_t perToken = (heads + 2) * headDim + 5, tokens = batch * seq;
  RopeSpec spec{seq,
                heads,
                headDim,
                inverse,
                {seq * perToken, perToken, headDim},
                {heads * seq * headDim, headDim, seq * headDim},
                dtype};
  std::vector<float> x = randomFloats(tokens * perToken, dtype);
  Tables tables(seq + 3, headDim / 2);
  std::vector<double> want = rotated(spec, x, tokens, tables);
  for (const CpuTarget &target : hostTargets()) {
    SCOPED_TRACE(testing::Message()
                 << "B" << batch << " T" << seq << " H" << heads << " D" << headDim << ", "
                 << gradc::row::name(dtype) << ", " << target.vectorBits << " bits");
    CompiledKernel kernel = compile(spec, target);
    ASSERT_TRUE(kernel);
    std::vector<float> out(tokens * heads * headDim, NAN), again = out;
    run(kernel, spec, x, tables, &out, tokens);
    std::vector<float> got = gather(spec, out, tokens);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], boundOf(dtype, want[i])) << "element " << i;
    run(kernel, spec, x, tables, &again, tokens, /*reversed=*/true);
    EXPECT_EQ(std::memcmp(again.data(), out.data(), out.size() * 4), 0);
  }
}

TEST(Rope, EqualsComplexMultiplication) {
  for (bool inverse : {false, true})
    for (int64_t headDim : {2, 10, 24, 32, 64, 80, 128})
      check(2, 67, 3, headDim, inverse);
  check(1, 1, 1, 64, false);
}

TEST(Rope, EqualsComplexMultiplicationInNarrowTypes) {
  for (Dtype dtype : {Dtype::bf16, Dtype::f16})
    for (bool inverse : {false, true})
      for (int64_t headDim : {2, 24, 64, 80})
        check(2, 67, 3, headDim, inverse, dtype);
}

TEST(Rope, KeepsNansAndInfinitiesInTheirPairs) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16}) {
    RopeSpec::Strides strides{3 * 32, 32, 16};
    RopeSpec spec{3, 2, 16, false, strides, strides, dtype};
    std::vector<float> x = randomFloats(3 * 32, dtype);
    x[32 + 3] = NAN;            // token 1, head 0, pair 3
    x[64 + 16 + 8] = -INFINITY; // token 2, head 1, pair 0
    Tables tables(3, 8);
    CompiledKernel kernel = compile(spec, CpuTarget::host());
    ASSERT_TRUE(kernel);
    run(kernel, spec, x, tables, nullptr, 3);
    for (int64_t i = 0; i < 3 * 32; ++i) {
      EXPECT_EQ(std::isnan(x[i]), i == 32 + 3 || i == 32 + 3 + 8) << i;
      EXPECT_EQ(std::isinf(x[i]), i == 64 + 16 || i == 64 + 16 + 8) << i;
    }
  }
}

TEST(Rope, InPlaceLeavesTheRestAndInverseUndoesIt) {
  int64_t seq = 65, heads = 2, headDim = 40, perToken = 3 * heads * headDim;
  RopeSpec::Strides strides{seq * perToken, perToken, headDim};
  RopeSpec spec{seq, heads, headDim, false, strides, strides};
  std::vector<float> x = randomFloats(seq * perToken, Dtype::f32), original = x;
  Tables tables(seq, headDim / 2);
  std::vector<double> want = rotated(spec, x, seq, tables);
  CompiledKernel forward = compile(spec, CpuTarget::host());
  ASSERT_TRUE(forward);
  run(forward, spec, x, tables, nullptr, seq);
  std::vector<float> got = gather(spec, x, seq);
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 2e-6);
  for (size_t i = 0; i < x.size(); ++i)
    if (static_cast<int64_t>(i) % perToken >= heads * headDim)
      ASSERT_EQ(x[i], original[i]);

  spec.inverse = true;
  CompiledKernel backward = compile(spec, CpuTarget::host());
  ASSERT_TRUE(backward);
  run(backward, spec, x, tables, nullptr, seq);
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], original[i], 2e-6);
}

/// Each token is turned as the token of its position is; numbers out of range count as the nearest.
TEST(Rope, PositionsOfABuffer) {
  int64_t seq = 67, heads = 3, headDim = 24, width = heads * headDim, tokens = 2 * seq;
  RopeSpec::Strides strides{seq * width, width, headDim};
  for (bool inverse : {false, true}) {
    RopeSpec plain{seq, heads, headDim, inverse, strides, strides}, spec = plain;
    spec.positions = true;
    std::vector<float> x = randomFloats(tokens * width, Dtype::f32), out(x.size(), NAN);
    Tables tables(seq, headDim / 2);
    std::vector<int32_t> positions(tokens);
    std::mt19937 random(9);
    for (int32_t &position : positions)
      position = static_cast<int32_t>(random() % (seq + 6)) - 3;
    for (const CpuTarget &target : hostTargets()) {
      CompiledKernel kernel = compile(spec, target);
      ASSERT_TRUE(kernel);
      for (int64_t task = 0; task < taskCount(spec, tokens); ++task)
        kernel.call(
            {x.data(), tables.cosines.data(), tables.sines.data(), positions.data(), out.data()},
            tokens, task);
      for (int64_t token = 0; token < tokens; ++token) {
        int64_t position = std::clamp<int64_t>(positions[token], 0, seq - 1);
        std::vector<float> row(seq * width, 0.f); // the token alone, at its position
        std::copy_n(&x[token * width], width, &row[position * width]);
        std::vector<double> want = rotated(plain, row, seq, tables);
        for (int64_t c = 0; c < width; ++c)
          ASSERT_NEAR(out[token * width + c], want[position * width + c], 2e-6) << token;
      }
    }
  }
}

TEST(Rope, SpecsAreVerified) {
  RopeSpec spec{4, 2, 6, false, {}, {}};
  EXPECT_EQ(verify(spec), "");
  spec.headDim = 5;
  EXPECT_NE(verify(spec), "");
  spec.headDim = 6;
  spec.dtype = Dtype::i32;
  EXPECT_NE(verify(spec), "");
}

} // namespace

// Embedding and its gradient against plain loops, in every type; sums in the order of the tokens
// are exact, and so is rounding to a narrower type.
#include "codegen/cpu/Embedding.h"

#include "ir/row/Evaluate.h"
#include "tests/numerics/CompiledKernel.h"
#include "tests/numerics/Elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

using namespace gradc::codegen;
using gradc::row::Dtype;

/// Numbers of the dtype.
std::vector<float> randomFloats(int64_t count, uint32_t seed, Dtype dtype = Dtype::f32) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &x : out)
    x = static_cast<float>(gradc::row::roundTo(dtype, normal(random)));
  return out;
}

/// With repeats and some negative.
std::vector<int32_t> randomTokens(int64_t count, int64_t vocab) {
  std::mt19937 random(5);
  std::vector<int32_t> out(count);
  for (int32_t &x : out)
    x = random() % 7 == 0 ? -1 - static_cast<int32_t>(random() % 100)
                          : static_cast<int32_t>(random() % vocab);
  return out;
}

/// The types of what is read and of what is written.
std::pair<Dtype, Dtype> typesOf(const EmbeddingSpec &spec) { return {spec.table, spec.out}; }
std::pair<Dtype, Dtype> typesOf(const EmbeddingGradientSpec &spec) { return {spec.dy, Dtype::f32}; }

template <typename Spec>
std::vector<float> run(const CompiledKernel &kernel, const Spec &spec, std::vector<int32_t> tokens,
                       const std::vector<float> &in, std::vector<float> out, bool reversed) {
  int64_t extent = static_cast<int64_t>(tokens.size()), tasks = taskCount(spec, extent);
  out.insert(out.end(), 16, 77.f); // beyond the end
  auto [inType, outType] = typesOf(spec);
  std::vector<std::byte> stored = gradc::row::encode(inType, in);
  std::vector<std::byte> result = gradc::row::encode(outType, out);
  for (int64_t i = 0; i < tasks; ++i)
    kernel.call({tokens.data(), stored.data(), result.data()}, extent,
                reversed ? tasks - 1 - i : i);
  out = gradc::row::decode<float>(outType, result);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(out[out.size() - 16 + i], 77.f);
  out.resize(out.size() - 16);
  return out;
}

void checkLookUp(const EmbeddingSpec &spec, int64_t count) {
  SCOPED_TRACE(testing::Message() << gradc::row::name(spec.table) << " -> "
                                  << gradc::row::name(spec.out) << ", " << spec.channels
                                  << " channels, " << count << " tokens");
  EXPECT_EQ(verify(spec), "");
  int64_t channels = spec.channels;
  std::vector<int32_t> tokens = randomTokens(count, spec.vocab);
  std::vector<float> table = randomFloats(spec.vocab * channels, 1, spec.table);
  std::vector<float> want(count * channels, 0.f);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < channels && tokens[i] >= 0; ++c)
      want[i * channels + c] =
          static_cast<float>(gradc::row::roundTo(spec.out, table[tokens[i] * channels + c]));
  for (const CpuTarget &target : hostTargets()) {
    CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef n) {
      emitEmbedding(m, n, spec, target);
    });
    ASSERT_TRUE(kernel);
    for (bool reversed : {false, true})
      EXPECT_EQ(run(kernel, spec, tokens, table, std::vector<float>(want.size(), NAN), reversed),
                want);
  }
}

TEST(Embedding, LooksUpRows) {
  for (int64_t channels : {1, 7, 16, 64, 100, 768})
    for (int64_t count : {1, 63, 64, 200})
      checkLookUp({50, channels}, count);
}

TEST(Embedding, LooksUpRowsOfAnyTypeInAnyType) {
  for (Dtype table : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (Dtype out : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (int64_t channels : {7, 100})
        checkLookUp({50, channels, table, out}, 70);
}

TEST(Embedding, RoundsTiesToEvenAndKeepsWhatIsNoNumber) {
  EmbeddingSpec spec{1, 9, Dtype::f32, Dtype::bf16};
  std::vector<float> table{1 + 0x1p-8f, 1 + 0x3p-8f, -1 - 0x1p-8f, -1 - 0x3p-8f, 0x1.ffp127f,
                           INFINITY,    -INFINITY,   -NAN,         NAN};
  std::vector<float> want{1,        1 + 0x1p-6f, -1,   -1 - 0x1p-6f, INFINITY,
                          INFINITY, -INFINITY,   -NAN, NAN};
  for (const CpuTarget &target : hostTargets()) {
    CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef n) {
      emitEmbedding(m, n, spec, target);
    });
    ASSERT_TRUE(kernel);
    std::vector<float> got = run(kernel, spec, {0}, table, std::vector<float>(9, 0), false);
    for (size_t i = 0; i < want.size(); ++i)
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(got[i])) << i << " is " << got[i];
      else
        EXPECT_EQ(got[i], want[i]) << i;
  }
}

void checkGradient(const EmbeddingGradientSpec &spec) {
  SCOPED_TRACE(testing::Message() << gradc::row::name(spec.dy) << ", " << spec.channels
                                  << " channels" << (spec.accumulate ? ", accumulate" : ""));
  EXPECT_EQ(verify(spec), "");
  int64_t channels = spec.channels;
  std::vector<int32_t> tokens = randomTokens(150, spec.vocab);
  std::vector<float> dy = randomFloats(150 * channels, 2, spec.dy);
  std::vector<float> before = spec.accumulate ? randomFloats(spec.vocab * channels, 3)
                                              : std::vector<float>(spec.vocab * channels, NAN);
  std::vector<float> want = spec.accumulate ? before : std::vector<float>(before.size(), 0.f);
  for (size_t i = 0; i < tokens.size(); ++i)
    for (int64_t c = 0; c < channels && tokens[i] >= 0; ++c)
      want[tokens[i] * channels + c] += dy[i * channels + c];
  for (const CpuTarget &target : hostTargets()) {
    CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef n) {
      emitEmbeddingGradient(m, n, spec, target);
    });
    ASSERT_TRUE(kernel);
    for (bool reversed : {false, true})
      EXPECT_EQ(run(kernel, spec, tokens, dy, before, reversed), want);
  }
}

TEST(Embedding, GradientAddsRowsInOrder) {
  for (int64_t channels : {1, 7, 64, 100, 130})
    for (bool accumulate : {false, true})
      for (Dtype dy : {Dtype::f32, Dtype::bf16, Dtype::f16})
        checkGradient({30, channels, accumulate, dy});
}

TEST(Embedding, TasksAndSpecs) {
  EXPECT_EQ(taskCount(EmbeddingSpec{10, 8}, 65), 2);
  EXPECT_EQ(taskCount(EmbeddingGradientSpec{10, 768, false}, 65), 12);
  EXPECT_EQ(verify(EmbeddingSpec{10, 8}), "");
  EXPECT_NE(verify(EmbeddingSpec{0, 8}), "");
  EXPECT_NE(verify(EmbeddingGradientSpec{10, 0, false}), "");
  EXPECT_NE(verify(EmbeddingSpec{10, 8, Dtype::i32}), "");
  EXPECT_NE(verify(EmbeddingSpec{10, 8, Dtype::f32, Dtype::i32}), "");
  EXPECT_NE(verify(EmbeddingGradientSpec{10, 8, false, Dtype::i32}), "");
}

} // namespace

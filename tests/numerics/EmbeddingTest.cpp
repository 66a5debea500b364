// Embedding and its gradient against plain loops; sums in the order of the tokens are exact.
#include "codegen/cpu/Embedding.h"

#include "tests/numerics/CompiledKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace {

using namespace gradc::codegen;

std::vector<float> randomFloats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &x : out)
    x = normal(random);
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

template <typename Spec>
std::vector<float> run(const CompiledKernel &kernel, const Spec &spec, std::vector<int32_t> tokens,
                       std::vector<float> in, std::vector<float> out, bool reversed) {
  int64_t extent = static_cast<int64_t>(tokens.size()), tasks = taskCount(spec, extent);
  out.insert(out.end(), 16, 77.f); // beyond the end
  for (int64_t i = 0; i < tasks; ++i)
    kernel.call({tokens.data(), in.data(), out.data()}, extent, reversed ? tasks - 1 - i : i);
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(out[out.size() - 16 + i], 77.f);
  out.resize(out.size() - 16);
  return out;
}

TEST(Embedding, LooksUpRows) {
  for (int64_t channels : {1, 7, 16, 64, 100, 768})
    for (int64_t count : {1, 63, 64, 200}) {
      EmbeddingSpec spec{50, channels};
      std::vector<int32_t> tokens = randomTokens(count, spec.vocab);
      std::vector<float> table = randomFloats(spec.vocab * channels, 1);
      std::vector<float> want(count * channels, 0.f);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < channels && tokens[i] >= 0; ++c)
          want[i * channels + c] = table[tokens[i] * channels + c];
      for (const CpuTarget &target : hostTargets()) {
        CompiledKernel kernel(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef n) {
          emitEmbedding(m, n, spec, target);
        });
        ASSERT_TRUE(kernel);
        for (bool reversed : {false, true})
          EXPECT_EQ(
              run(kernel, spec, tokens, table, std::vector<float>(want.size(), NAN), reversed),
              want);
      }
    }
}

TEST(Embedding, GradientAddsRowsInOrder) {
  for (int64_t channels : {1, 7, 64, 100, 130})
    for (bool accumulate : {false, true}) {
      EmbeddingGradientSpec spec{30, channels, accumulate};
      std::vector<int32_t> tokens = randomTokens(150, spec.vocab);
      std::vector<float> dy = randomFloats(150 * channels, 2);
      std::vector<float> before = accumulate ? randomFloats(spec.vocab * channels, 3)
                                             : std::vector<float>(spec.vocab * channels, NAN);
      std::vector<float> want = accumulate ? before : std::vector<float>(before.size(), 0.f);
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
}

TEST(Embedding, TasksAndSpecs) {
  EXPECT_EQ(taskCount(EmbeddingSpec{10, 8}, 65), 2);
  EXPECT_EQ(taskCount(EmbeddingGradientSpec{10, 768, false}, 65), 12);
  EXPECT_EQ(verify(EmbeddingSpec{10, 8}), "");
  EXPECT_NE(verify(EmbeddingSpec{0, 8}), "");
  EXPECT_NE(verify(EmbeddingGradientSpec{10, 0, false}), "");
}

} // namespace

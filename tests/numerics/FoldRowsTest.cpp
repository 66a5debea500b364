// Sums over partial results.
#include "codegen/cpu/FoldRows.h"

#include "ir/row/RowProgram.h"
#include "tests/numerics/CompiledKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace gradc::codegen;

namespace {

std::vector<float> randomNumbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
  return numbers;
}

TEST(FoldRows, AddsRowsInOrder) {
  for (const CpuTarget &target : hostTargets())
    for (int64_t columns : {1, 7, 64, 100, 256, 300, 768}) {
      CompiledKernel kernel(target, [&](auto &builder, auto module, llvm::StringRef name) {
        emitFoldRows(builder, module, name, columns, target);
      });
      ASSERT_TRUE(kernel);
      for (int64_t rows : {0, 1, 17}) {
        std::vector<float> partials = randomNumbers(rows * columns, 3);
        std::vector<float> out(columns + 8, 77), want(columns + 8, 77);
        for (int64_t column = 0; column < columns; ++column) {
          want[column] = 0;
          for (int64_t row = 0; row < rows; ++row)
            want[column] += partials[row * columns + column];
        }
        int64_t tasks = (columns + foldColumnsPerTask - 1) / foldColumnsPerTask;
        for (int64_t task = tasks; task-- > 0;)
          kernel.call({partials.data(), out.data()}, rows, task);
        EXPECT_EQ(out, want) << columns << " columns, " << rows << " rows";
      }
    }
}

TEST(FoldRows, SquaresOfChunks) {
  for (const CpuTarget &target : hostTargets()) {
    CompiledKernel kernel(target, [&](auto &builder, auto module, llvm::StringRef name) {
      emitChunkSquareSums(builder, module, name, target);
    });
    ASSERT_TRUE(kernel);
    for (int64_t extent : {1, 33, 16384, 16385, 50000}) {
      std::vector<float> x = randomNumbers(extent, 5);
      constexpr int64_t perTask = gradc::row::flatElementsPerTask;
      int64_t tasks = (extent + perTask - 1) / perTask;
      std::vector<float> partials(tasks + 1, -1);
      for (int64_t task = 0; task < tasks; ++task)
        kernel.call({x.data(), partials.data()}, extent, task);
      for (int64_t task = 0; task < tasks; ++task) {
        double want = 0;
        for (int64_t i = task * perTask; i < std::min(extent, (task + 1) * perTask); ++i)
          want += static_cast<double>(x[i]) * x[i];
        EXPECT_NEAR(partials[task], want, 1e-5 * want) << extent << " elements, task " << task;
      }
      EXPECT_EQ(partials[tasks], -1);
    }
  }
}

TEST(FoldRows, SumOfEverything) {
  for (const CpuTarget &target : hostTargets()) {
    CompiledKernel kernel(target, [&](auto &builder, auto module, llvm::StringRef name) {
      emitFoldAll(builder, module, name, target);
    });
    ASSERT_TRUE(kernel);
    for (int64_t extent : {0, 1, 31, 7600}) {
      std::vector<float> x = randomNumbers(extent, 9);
      double want = 0;
      for (float number : x)
        want += number;
      float out[2] = {5, 6};
      kernel.call({x.data(), out}, extent, 0);
      EXPECT_FLOAT_EQ(out[0], static_cast<float>(want)); // 4 units, as the order differs
      EXPECT_EQ(out[1], 6);
    }
    std::vector<float> withNan = {1, NAN, 2};
    float out = 0;
    kernel.call({withNan.data(), &out}, 3, 0);
    EXPECT_TRUE(std::isnan(out));
  }
}

} // namespace

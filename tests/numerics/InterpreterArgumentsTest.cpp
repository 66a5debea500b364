// Random arguments fit their function; comparisons see every difference.
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using namespace gradc::nn;
using namespace gradc::test;

constexpr double infinity = std::numeric_limits<double>::infinity();

double least(const HostTensor &tensor) { return *std::ranges::min_element(tensor.values); }
double greatest(const HostTensor &tensor) { return *std::ranges::max_element(tensor.values); }

TEST(RandomArguments, IndicesFitWhatTheyIndexThroughViewsAndRegions) {
  ParsedModule parsed(
      R"(func.func @f(%tokens: tensor<4x2x32xi32>, %targets: tensor<4x64xi32>, %table: tensor<7x3xf32>, %zero: tensor<f32>) -> tensor<f32> {
    %0 = nn.microbatches sliced(%tokens, %targets : tensor<4x2x32xi32>, tensor<4x64xi32>) carried(%zero : tensor<f32>) -> (tensor<f32>) {
    ^bb0(%slice: tensor<2x32xi32>, %t: tensor<64xi32>, %sum: tensor<f32>):
      %flat = nn.reshape %slice : tensor<2x32xi32> to tensor<64xi32>
      %x = nn.embedding %flat, %table : tensor<64xi32>, tensor<7x3xf32> -> tensor<64x3xf32>
      %loss, %lse = nn.cross_entropy %x, %t : tensor<64x3xf32>, tensor<64xi32> -> tensor<64x1xf32>, tensor<64x1xf32>
      %s = nn.sum %loss : tensor<64x1xf32>
      nn.yield %s : tensor<f32>
    }
    return %0 : tensor<f32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto arguments = randomArguments(parsed.function(), 3);
  EXPECT_EQ(least(arguments[0]), 0);
  EXPECT_EQ(greatest(arguments[0]), 6);
  EXPECT_EQ(least(arguments[1]), -1);
  EXPECT_EQ(greatest(arguments[1]), 2);
  EXPECT_GE(arguments[1][0], 0) << "at least one target is a label";
  auto results = interpret(parsed.function(), arguments);
  ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
  EXPECT_TRUE(std::isfinite((*results)[0][0]));
}

TEST(RandomArguments, OptimizerStateAndScalarsAreSane) {
  ParsedModule parsed(
      R"(func.func @f(%p: tensor<64xf32>, %g: tensor<64xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>, %s: tensor<f32>, %lr: tensor<f32>, %b1: tensor<f32>, %b2: tensor<f32>, %e: tensor<f32>, %wd: tensor<f32>, %c1: tensor<f32>, %c2: tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
    %0, %1, %2 = nn.adamw %p, %g, %m, %v, %s, %lr, %b1, %b2, %e, %wd, %c1, %c2 {decay = true} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
    return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto arguments = randomArguments(parsed.function(), 3);
  EXPECT_LT(least(arguments[1]), 0);
  EXPECT_GT(least(arguments[3]), 0);
  for (int i = 4; i < 12; ++i) {
    EXPECT_GT(arguments[i][0], 0) << "argument " << i;
    EXPECT_LT(arguments[i][0], 1) << "argument " << i;
  }
}

TEST(RandomArguments, AStatedRangeComesFirstAndTheRestIsBellShaped) {
  ParsedModule parsed(
      R"(func.func @f(%x: tensor<1000xf32> {nn.range = [2.0, 3]}, %y: tensor<1000xf32>, %i: tensor<1000xi32>, %j: tensor<1000xi32> {nn.range = [10, 12]}) -> tensor<1000xf32> {
    %0 = nn.log %x : tensor<1000xf32>
    return %0 : tensor<1000xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto arguments = randomArguments(parsed.function(), 3);
  EXPECT_GE(least(arguments[0]), 2);
  EXPECT_LE(greatest(arguments[0]), 3);
  double sum = 0, squares = 0;
  for (double y : arguments[1].values) {
    sum += y;
    squares += y * y;
  }
  EXPECT_NEAR(sum / 1000, 0, 0.06);
  EXPECT_NEAR(std::sqrt(squares / 1000), 0.5, 0.05);
  EXPECT_EQ(least(arguments[2]), 0);
  EXPECT_EQ(greatest(arguments[2]), 3);
  EXPECT_EQ(least(arguments[3]), 10);
  EXPECT_EQ(greatest(arguments[3]), 11);
}

TEST(RandomArguments, FollowTheSeed) {
  ParsedModule parsed(
      R"(func.func @f(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto first = randomArguments(parsed.function(), 1), again = randomArguments(parsed.function(), 1),
       other = randomArguments(parsed.function(), 2);
  EXPECT_EQ(first[0].values, again[0].values);
  EXPECT_NE(first[0].values, other[0].values);
  EXPECT_NE(first[0].values, first[1].values);
}

TEST(CompareValues, NanNeverPasses) {
  HostTensor number = tensorOf({2}, {1, 2}), nan = tensorOf({2}, {1, std::nan("")});
  Tolerances anything{.norm = infinity, .absolute = infinity};
  for (auto [actual, expected] :
       {std::pair(number, nan), std::pair(nan, number), std::pair(nan, nan)}) {
    Comparison comparison = compareValues(actual, expected, anything);
    EXPECT_FALSE(comparison.passed);
    EXPECT_EQ(comparison.worst, 1);
    EXPECT_NE(comparison.report.find("not a number"), std::string::npos) << comparison.report;
  }
}

TEST(CompareValues, InfinitiesMustBeTheSame) {
  HostTensor infinite = tensorOf({2}, {1, -infinity});
  EXPECT_TRUE(compareValues(infinite, infinite).passed);
  EXPECT_FALSE(compareValues(tensorOf({2}, {1, infinity}), infinite).passed);
  EXPECT_FALSE(compareValues(tensorOf({2}, {1, 5}), infinite).passed);
  EXPECT_FALSE(compareValues(infinite, tensorOf({2}, {1, 5})).passed);
  EXPECT_FALSE(compareValues(tensorOf({2}, {1.1, -infinity}), infinite).passed)
      << "an infinity does not hide an error beside it";
}

TEST(CompareValues, ReportsTheWorstElement) {
  HostTensor expected = tensorOf({2, 2}, {1, 2, 3, 4}), actual = tensorOf({2, 2}, {1, 2.5, 3, 3});
  Comparison comparison = compareValues(actual, expected);
  EXPECT_FALSE(comparison.passed);
  EXPECT_EQ(comparison.worst, 3);
  EXPECT_DOUBLE_EQ(comparison.normError, 0.25);
  EXPECT_DOUBLE_EQ(comparison.elementwiseError, 0.25);
  EXPECT_EQ(comparison.report, "expected 4 at [1, 1], got: 3 (relative error 2.50e-01 by norm, "
                               "2.50e-01 by element)");
}

TEST(CompareValues, BoundsByNormByElementAndAbsolute) {
  HostTensor expected = tensorOf({2}, {1000, 1e-6}), actual = tensorOf({2}, {1000, 2e-6});
  EXPECT_TRUE(compareValues(actual, expected, {.norm = 1e-8}).passed);
  EXPECT_FALSE(compareValues(actual, expected, {.norm = 1e-10}).passed);
  EXPECT_FALSE(compareValues(actual, expected, {.norm = 1, .elementwise = 0.5}).passed);
  EXPECT_TRUE(compareValues(actual, expected, {.norm = 1, .elementwise = 2}).passed);
  EXPECT_TRUE(compareValues(actual, expected, {.norm = 0, .absolute = 1e-5}).passed);
}

TEST(CompareValues, ZeroExpectedAsksForZero) {
  EXPECT_TRUE(compareValues(tensorOf({1}, {0}), tensorOf({1}, {0}), {.norm = 0}).passed);
  EXPECT_FALSE(compareValues(tensorOf({1}, {1e-30}), tensorOf({1}, {0}), {.norm = 1}).passed);
}

TEST(CompareValues, ShapesMustBeEqual) {
  EXPECT_EQ(compareValues(tensorOf({2, 1}, {1}), tensorOf({2}, {1})).report,
            "expected shape [2], got: [2, 1]");
}

} // namespace

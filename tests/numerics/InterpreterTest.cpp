// Every op's reference evaluation against values worked out by hand, and the interpreter itself.
#include "ir/Interpreter.h"
#include "ir/Compare.h"
#include "ir/Nn.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace {

using namespace gradc::nn;
using namespace gradc::test;
using Values = std::vector<std::vector<double>>;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double ln3 = std::log(3.0), ln4 = std::log(4.0), e = std::exp(1.0);

struct Case {
  std::string name;
  std::string body; ///< "(arguments) -> results { … }" of @f
  Values arguments, results;
};

void PrintTo(const Case &test, std::ostream *out) { *out << test.name; }

const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
#include "tests/numerics/InterpreterCases.inc"
  };
  return all;
}

class Interpret : public testing::TestWithParam<Case> {};

TEST_P(Interpret, GivesTheValuesWorkedOutByHand) {
  const Case &test = GetParam();
  ParsedModule parsed("func.func @f" + test.body);
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  mlir::func::FuncOp function = parsed.function();
  llvm::SmallVector<HostTensor> arguments;
  ASSERT_EQ(function.getNumArguments(), test.arguments.size());
  for (auto [type, values] : llvm::zip_equal(function.getArgumentTypes(), test.arguments))
    arguments.push_back(tensorOf(zerosOf(type).shape, values));
  auto results = interpret(function, arguments);
  ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
  ASSERT_EQ(results->size(), test.results.size());
  for (auto [i, result] : llvm::enumerate(*results)) {
    auto type = mlir::cast<mlir::RankedTensorType>(function.getResultTypes()[i]);
    ASSERT_EQ(result.size(), static_cast<int64_t>(test.results[i].size()));
    HostTensor expected = tensorOf(type.getShape(), test.results[i]);
    Comparison comparison = compareValues(result, expected, {.norm = 1e-14, .absolute = 1e-14});
    EXPECT_TRUE(comparison.passed) << "result #" << i << ": " << comparison.report;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Interpret, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

TEST(InterpretCoverage, EveryOpThatEvaluatesHasACase) {
  std::set<std::string> covered;
  for (const Case &test : cases()) {
    ParsedModule parsed("func.func @f" + test.body);
    ASSERT_TRUE(parsed.ok()) << test.name << ": " << parsed.diagnostics();
    parsed.module().walk(
        [&](mlir::Operation *op) { covered.insert(op->getName().getStringRef().str()); });
  }
  ParsedModule empty("");
  std::vector<std::string> all = opsWith<EvaluateOpInterface>(empty.context());
  ASSERT_FALSE(all.empty());
  all.push_back("nn.microbatches");
  for (const std::string &name : all)
    EXPECT_TRUE(covered.contains(name)) << name << " has no case in InterpreterCases.inc";
}

/// Runs @f on these arguments, expecting it to fail, and gives the diagnostics.
std::string diagnosticsOf(const std::string &module, llvm::ArrayRef<HostTensor> arguments) {
  ParsedModule parsed(module);
  if (!parsed.ok())
    return "does not parse: " + parsed.diagnostics();
  auto results = interpret(parsed.function(), arguments);
  return llvm::succeeded(results) ? "succeeded" : parsed.diagnostics();
}

TEST(InterpretErrors, IndexBeyondTheTable) {
  EXPECT_EQ(
      diagnosticsOf(R"(func.func @f(%i: tensor<2xi32>, %t: tensor<3x1xf32>) -> tensor<2x1xf32> {
    %0 = nn.embedding %i, %t : tensor<2xi32>, tensor<3x1xf32> -> tensor<2x1xf32>
    return %0 : tensor<2x1xf32> })",
                    {tensorOf({2}, {2, 3}), tensorOf({3, 1}, {1})}),
      "'nn.embedding' op expected indices below 3, got: 3 at position 1\n");
}

TEST(InterpretErrors, TargetBeyondTheColumns) {
  EXPECT_EQ(
      diagnosticsOf(R"(func.func @f(%l: tensor<2x3xf32>, %t: tensor<2xi32>) -> tensor<2x1xf32> {
    %0, %1 = nn.cross_entropy %l, %t : tensor<2x3xf32>, tensor<2xi32> -> tensor<2x1xf32>, tensor<2x1xf32>
    return %0 : tensor<2x1xf32> })",
                    {tensorOf({2, 3}, {1}), tensorOf({2}, {0, 7})}),
      "'nn.cross_entropy' op expected targets below 3, got: 7 at row 1\n");
}

TEST(InterpretErrors, OpWithoutEvaluation) {
  EXPECT_EQ(diagnosticsOf(R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = builtin.unrealized_conversion_cast %x : tensor<2xf32> to tensor<2xf32>
    return %0 : tensor<2xf32> })",
                          {tensorOf({2}, {1})}),
            "'builtin.unrealized_conversion_cast' op can not be evaluated: it has no reference "
            "evaluation\n");
}

TEST(InterpretErrors, FailureInsideMicrobatches) {
  EXPECT_EQ(
      diagnosticsOf(
          R"(func.func @f(%i: tensor<2x1xi32>, %t: tensor<3x1xf32>, %s: tensor<1x1xf32>) -> tensor<1x1xf32> {
    %0 = nn.microbatches sliced(%i : tensor<2x1xi32>) carried(%s : tensor<1x1xf32>) -> (tensor<1x1xf32>) {
    ^bb0(%slice: tensor<1xi32>, %sum: tensor<1x1xf32>):
      %e = nn.embedding %slice, %t : tensor<1xi32>, tensor<3x1xf32> -> tensor<1x1xf32>
      nn.yield %e : tensor<1x1xf32>
    }
    return %0 : tensor<1x1xf32> })",
          {tensorOf({2, 1}, {0, 5}), tensorOf({3, 1}, {1}), tensorOf({1, 1}, {0})}),
      "'nn.embedding' op expected indices below 3, got: 5 at position 0\n");
}

TEST(InterpretErrors, WrongArguments) {
  const char *identity =
      "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }";
  EXPECT_EQ(diagnosticsOf(identity, {}), "'func.func' op expected 1 arguments, got: 0\n");
  EXPECT_EQ(
      diagnosticsOf(identity, {tensorOf({3}, {1})}),
      "'func.func' op expected argument 0 of type 'tensor<2xf32>', got one of another shape\n");
  EXPECT_EQ(
      diagnosticsOf("func.func private @f(tensor<2xf32>) -> tensor<2xf32>", {tensorOf({2}, {1})}),
      "'func.func' op has no body to interpret\n");
}

TEST(InterpretErrors, RecursionEnds) {
  EXPECT_EQ(diagnosticsOf(R"(func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32> })",
                          {tensorOf({2}, {1})}),
            "'func.func' op calls itself, which can not be interpreted\n");
}

TEST(Interpreter, ClippingKeepsANormThatIsNotFiniteVisible) {
  ParsedModule parsed(R"(func.func @f(%n: tensor<f32>, %l: tensor<f32>) -> tensor<f32> {
    %0 = nn.clip_coefficient %n, %l : tensor<f32>
    return %0 : tensor<f32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  for (double norm : {infinity, std::nan("")})
    for (double limit : {0.0, 1.0}) {
      auto result = interpret(parsed.function(), {tensorOf({}, {norm}), tensorOf({}, {limit})});
      ASSERT_TRUE(llvm::succeeded(result));
      EXPECT_FALSE(std::isfinite((*result)[0][0])) << norm << ", limit " << limit;
    }
}

TEST(Interpreter, NanStaysVisible) {
  ParsedModule parsed(
      R"(func.func @f(%x: tensor<1x2xf32>, %t: tensor<1xi32>) -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x1xf32>) {
    %0 = nn.softmax %x : tensor<1x2xf32>
    %1 = nn.activation relu %x : tensor<1x2xf32>
    %2, %lse2 = nn.attention %x, %x, %x batch 1 heads 1 kv_heads 1 scale 1.0 causal : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>, tensor<1x1x1xf32>
    %3, %lse3 = nn.cross_entropy %x, %t : tensor<1x2xf32>, tensor<1xi32> -> tensor<1x1xf32>, tensor<1x1xf32>
    return %0, %1, %2, %3 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x1xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  for (std::vector<double> x : {std::vector{std::nan(""), 1.0}, std::vector{1.0, std::nan("")}}) {
    auto results = interpret(parsed.function(), {tensorOf({1, 2}, x), tensorOf({1}, {0})});
    ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
    for (const HostTensor &result : *results)
      EXPECT_TRUE(llvm::any_of(result.values, [](double v) { return std::isnan(v); }));
  }
}

TEST(Interpreter, ValuesPassFromAboveIntoRegionsAndOutlastThem) {
  // %y is computed once, read in every microbatch and again after them.
  ParsedModule parsed(
      R"(func.func @f(%x: tensor<3x2xf32>, %z: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %y = nn.exp %z : tensor<2xf32>
    %0 = nn.microbatches sliced(%x : tensor<3x2xf32>) carried(%z : tensor<2xf32>) -> (tensor<2xf32>) {
    ^bb0(%slice: tensor<2xf32>, %sum: tensor<2xf32>):
      %p = nn.mul %slice, %y : tensor<2xf32>, tensor<2xf32>
      %s = nn.add %sum, %p : tensor<2xf32>, tensor<2xf32>
      nn.yield %s : tensor<2xf32>
    }
    %1 = nn.add %y, %y : tensor<2xf32>, tensor<2xf32>
    return %0, %1 : tensor<2xf32>, tensor<2xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto results =
      interpret(parsed.function(), {tensorOf({3, 2}, {1, 2, 3, 4, 5, 6}), tensorOf({2}, {0, 1})});
  ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
  EXPECT_DOUBLE_EQ((*results)[0][0], 9);
  EXPECT_DOUBLE_EQ((*results)[0][1], 1 + 12 * e);
  EXPECT_DOUBLE_EQ((*results)[1][1], 2 * e);
}

} // namespace

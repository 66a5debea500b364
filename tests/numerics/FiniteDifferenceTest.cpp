// Every differentiable op's backward against central differences of its reference, in f64.
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "mlir/IR/Verifier.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace {

using namespace gradc::nn;
using namespace gradc::test;

struct Case {
  std::string name;
  std::string body;              ///< "(arguments) -> result { one op }" of @f
  std::set<unsigned> fixed = {}; ///< float arguments that have no gradient by the op's definition
};

void PrintTo(const Case &test, std::ostream *out) { *out << test.name; }

const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
#include "tests/numerics/FiniteDifferenceCases.inc"
  };
  return all;
}

/// The op under test: the only differentiable one of @f.
DifferentiableOpInterface opOf(mlir::func::FuncOp function) {
  DifferentiableOpInterface found;
  function.walk([&](DifferentiableOpInterface op) { found = op; });
  return found;
}

/// Adds @gradient(arguments of @f, gradient of its result) -> gradients of its arguments, in the
/// order of the indices returned, by the op's own buildBackward.
std::vector<unsigned> buildGradientFunction(ParsedModule &parsed) {
  mlir::func::FuncOp function = parsed.function();
  auto gradient = mlir::cast<mlir::func::FuncOp>(function->clone());
  gradient.setName("gradient");
  parsed.module().push_back(gradient);
  mlir::Block &block = gradient.front();
  DifferentiableOpInterface op = opOf(gradient);
  EXPECT_TRUE(llvm::succeeded(gradient.insertArgument(
      gradient.getNumArguments(), op->getResult(0).getType(), {}, op.getLoc())));
  mlir::Value seed = block.getArguments().back();
  mlir::Operation *terminator = block.getTerminator();
  mlir::OpBuilder builder(terminator);
  llvm::SmallVector<mlir::Value> resultGradients(op->getNumResults()),
      operandGradients(op->getNumOperands());
  resultGradients[0] = seed;
  op.buildBackward(builder, resultGradients, operandGradients);
  std::vector<unsigned> indices;
  llvm::SmallVector<mlir::Value> results;
  for (auto [operand, operandGradient] : llvm::zip_equal(op->getOperands(), operandGradients)) {
    if (!operandGradient)
      continue;
    EXPECT_EQ(operandGradient.getType(), operand.getType());
    indices.push_back(mlir::cast<mlir::BlockArgument>(operand).getArgNumber());
    results.push_back(operandGradient);
  }
  terminator->setOperands(results);
  gradient.setFunctionType(
      builder.getFunctionType(block.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
  return indices;
}

class FiniteDifference : public testing::TestWithParam<Case> {};

TEST_P(FiniteDifference, BackwardIsTheDerivative) {
  const Case &test = GetParam();
  ParsedModule parsed("func.func @f" + test.body);
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  mlir::func::FuncOp function = parsed.function();
  ASSERT_TRUE(opOf(function));
  std::vector<unsigned> differentiated = buildGradientFunction(parsed);
  mlir::func::FuncOp gradientFunction = parsed.function("gradient");
  ASSERT_TRUE(llvm::succeeded(mlir::verify(gradientFunction))) << parsed.diagnostics();

  llvm::SmallVector<HostTensor> arguments = randomArguments(function, 7);
  HostTensor weights = zerosOf(function.getResultTypes()[0]);
  for (int64_t i = 0; i < weights.size(); ++i)
    weights[i] = std::cos(1.0 + static_cast<double>(i)); // no structure that an error could share
  llvm::SmallVector<HostTensor> withSeed(arguments);
  withSeed.push_back(weights);
  auto gradients = interpret(gradientFunction, withSeed);
  ASSERT_TRUE(llvm::succeeded(gradients)) << parsed.diagnostics();

  std::set<unsigned> expected;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    if (mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type)) && !test.fixed.contains(i))
      expected.insert(i);
  EXPECT_EQ(std::set<unsigned>(differentiated.begin(), differentiated.end()), expected);
  for (auto [argument, gradient] : llvm::zip_equal(differentiated, *gradients)) {
    HostTensor difference = centralDifferences(function, arguments, argument, weights);
    Comparison comparison = compareValues(gradient, difference, {.norm = 1e-6, .absolute = 1e-9});
    EXPECT_TRUE(comparison.passed) << "argument " << argument << ": " << comparison.report;
    EXPECT_GT(std::abs(*std::ranges::max_element(difference.values, {},
                                                 [](double x) { return std::abs(x); })),
              1e-3)
        << "argument " << argument << " has no gradient that a test could tell from 0";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, FiniteDifference, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

TEST(FiniteDifferenceCoverage, EveryDifferentiableOpHasACase) {
  std::set<std::string> covered;
  for (const Case &test : cases()) {
    ParsedModule parsed("func.func @f" + test.body);
    ASSERT_TRUE(parsed.ok()) << test.name << ": " << parsed.diagnostics();
    if (DifferentiableOpInterface op = opOf(parsed.function()))
      covered.insert(op->getName().getStringRef().str());
  }
  ParsedModule empty("");
  std::vector<std::string> all = opsWith<DifferentiableOpInterface>(empty.context());
  ASSERT_FALSE(all.empty());
  for (const std::string &name : all)
    EXPECT_TRUE(covered.contains(name)) << name << " has no case in FiniteDifferenceCases.inc";
}

TEST(FiniteDifferenceEdges, RmsNormOfZeroRows) {
  ParsedModule parsed(R"(func.func @f(%x: tensor<3x4xf32>, %w: tensor<4xf32>) -> tensor<3x4xf32> {
    %0, %1 = nn.rms_norm %x, %w eps 1.0e-6 : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x1xf32>
    return %0 : tensor<3x4xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  ASSERT_EQ(buildGradientFunction(parsed), (std::vector<unsigned>{0, 1}));
  auto gradients =
      interpret(parsed.function("gradient"),
                {tensorOf({3, 4}, {0}), tensorOf({4}, {1, 2, 3, 4}), tensorOf({3, 4}, {1, -2, 3})});
  ASSERT_TRUE(llvm::succeeded(gradients)) << parsed.diagnostics();
  for (double value : (*gradients)[0].values)
    EXPECT_TRUE(std::isfinite(value));
  for (double value : (*gradients)[1].values)
    EXPECT_EQ(value, 0);
}

TEST(FiniteDifferenceEdges, RowsWithoutLabelsHaveNoGradient) {
  ParsedModule parsed(R"(func.func @f(%l: tensor<3x4xf32>, %t: tensor<3xi32>) -> tensor<3x1xf32> {
    %0, %1 = nn.cross_entropy %l, %t : tensor<3x4xf32>, tensor<3xi32> -> tensor<3x1xf32>, tensor<3x1xf32>
    return %0 : tensor<3x1xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  ASSERT_EQ(buildGradientFunction(parsed), (std::vector<unsigned>{0}));
  auto gradients =
      interpret(parsed.function("gradient"), {tensorOf({3, 4}, {1, -2, 3}),
                                              tensorOf({3}, {-1, 2, -100}), tensorOf({3, 1}, {1})});
  ASSERT_TRUE(llvm::succeeded(gradients)) << parsed.diagnostics();
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ((*gradients)[0][i] != 0, i / 4 == 1) << i;
}

} // namespace

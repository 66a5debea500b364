// Linear layers in fp8 mean what they mean in f32, rounding aside: the interpreter, which rounds
// nothing, gives the same loss and the same gradients, and records get the largest magnitudes.
#include "codegen/cpu/KernelFamilies.h"
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace {

using namespace gradc::nn;
using namespace gradc::test;

// Two products that share their activation, one behind them, a weight stored by rows and one used
// twice, and a head.
const char *const model = R"(
func.func @loss(
    %table: tensor<7x8xf32> {nn.param = {name = "table"}},
    %left: tensor<8x6xf32> {nn.param = {name = "left"}},
    %right: tensor<6x8xf32> {nn.param = {name = "right"}},
    %bias: tensor<6xf32> {nn.param = {name = "bias"}},
    %square: tensor<8x8xf32> {nn.param = {name = "square"}},
    %down: tensor<6x8xf32> {nn.param = {name = "down"}},
    %tokens: tensor<10xi32>, %targets: tensor<10xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<10xi32>, tensor<7x8xf32> -> tensor<10x8xf32>
  %a = nn.matmul %x, %left : tensor<10x8xf32>, tensor<8x6xf32> -> tensor<10x6xf32>
  %b = nn.matmul %x, %right transpose_rhs : tensor<10x8xf32>, tensor<6x8xf32> -> tensor<10x6xf32>
  %biased = nn.add %a, %bias : tensor<10x6xf32>, tensor<6xf32>
  %act = nn.activation silu %biased : tensor<10x6xf32>
  %gated = nn.mul %act, %b : tensor<10x6xf32>, tensor<10x6xf32>
  %out = nn.matmul %gated, %down : tensor<10x6xf32>, tensor<6x8xf32> -> tensor<10x8xf32>
  %y = nn.add %x, %out : tensor<10x8xf32>, tensor<10x8xf32>
  %once = nn.matmul %y, %square : tensor<10x8xf32>, tensor<8x8xf32> -> tensor<10x8xf32>
  %tanh = nn.tanh %once : tensor<10x8xf32>
  %twice = nn.matmul %tanh, %square : tensor<10x8xf32>, tensor<8x8xf32> -> tensor<10x8xf32>
  %z = nn.add %y, %twice : tensor<10x8xf32>, tensor<10x8xf32>
  %logits = nn.matmul %z, %table transpose_rhs : tensor<10x8xf32>, tensor<7x8xf32> -> tensor<10x7xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<10x7xf32>, tensor<10xi32> -> tensor<10x1xf32>, tensor<10x1xf32>
  %loss = nn.sum %each : tensor<10x1xf32>
  return %loss : tensor<f32>
})";
constexpr unsigned parameters = 6;

class QuantizedModel : public testing::Test {
protected:
  QuantizedModel() : plain(model), quantized(model) {}

  void build(bool delayed) {
    ASSERT_TRUE(plain.ok() && quantized.ok()) << plain.diagnostics();
    arguments = randomArguments(plain.function("loss"), 5);
    mlir::PassManager reference(&plain.context()), passes(&quantized.context());
    reference.addPass(gradc::createAutodiffPass());
    passes.addPass(gradc::createPrecisionPass({.mode = "fp8", .delayedScaling = delayed}));
    passes.addPass(gradc::createAutodiffPass());
    passes.addPass(gradc::createQuantizeProductsPass(library));
    ASSERT_TRUE(llvm::succeeded(reference.run(plain.module()))) << plain.diagnostics();
    ASSERT_TRUE(llvm::succeeded(passes.run(quantized.module()))) << quantized.diagnostics();
  }

  gradc::codegen::CpuKernelLibrary library{gradc::codegen::CpuTarget::host()};

  /// Loss, gradients and next records with these records, all of one value.
  llvm::SmallVector<HostTensor> run(ParsedModule &parsed, double record) {
    mlir::func::FuncOp function = parsed.function("loss_and_gradients");
    llvm::SmallVector<HostTensor> values(arguments.begin(), arguments.begin() + parameters);
    for (unsigned i = parameters; function.getArgAttr(i, "nn.record"); ++i)
      values.push_back(tensorOf({}, {record}));
    values.append(arguments.begin() + parameters, arguments.end());
    values.push_back(tensorOf({}, {0.3}));
    auto results = interpret(function, values);
    EXPECT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
    return llvm::succeeded(results) ? *results : llvm::SmallVector<HostTensor>();
  }

  void expectSameGradients(double record) {
    llvm::SmallVector<HostTensor> expected = run(plain, record), got = run(quantized, record);
    ASSERT_EQ(expected.size(), parameters + 1);
    ASSERT_GE(got.size(), expected.size());
    for (auto [i, value] : llvm::enumerate(expected)) {
      Comparison comparison = compareValues(got[i], value, {.norm = 1e-12, .absolute = 1e-12});
      EXPECT_TRUE(comparison.passed) << "result " << i << ": " << comparison.report;
    }
  }

  ParsedModule plain, quantized;
  llvm::SmallVector<HostTensor> arguments;
};

TEST_F(QuantizedModel, CurrentScalesGiveTheSameGradients) {
  build(/*delayed=*/false);
  expectSameGradients(0);
  // Of five linear layers: five products forward, ten backward; the head's three stay.
  int64_t ofFp8 = 0, others = 0;
  quantized.function("loss_and_gradients").walk([&](MatmulOp op) {
    ++(op.getLhsScale() ? ofFp8 : others);
    mlir::Type lhs = mlir::getElementTypeOrSelf(op.getLhs()),
               rhs = mlir::getElementTypeOrSelf(op.getRhs());
    if (op.getLhsScale()) // never two gradients
      EXPECT_TRUE(mlir::isa<mlir::Float8E4M3FNType>(lhs) || mlir::isa<mlir::Float8E4M3FNType>(rhs));
  });
  EXPECT_EQ(ofFp8, 15);
  EXPECT_EQ(others, 3);
}

TEST_F(QuantizedModel, DelayedScalesGiveTheSameGradientsWhereNothingSaturates) {
  build(/*delayed=*/true);
  expectSameGradients(100);
}

/// The records' names are those of the weights; what they get does not depend on what they hold.
TEST_F(QuantizedModel, RecordsGetTheLargestMagnitudes) {
  build(/*delayed=*/true);
  mlir::func::FuncOp function = quantized.function("loss_and_gradients");
  std::map<std::string, size_t> resultOf;
  for (unsigned i = parameters; function.getArgAttr(i, "nn.record"); ++i) {
    auto record = function.getArgAttrOfType<mlir::DictionaryAttr>(i, "nn.record");
    resultOf[record.getAs<mlir::StringAttr>("name").str() + "/" +
             record.getAs<mlir::StringAttr>("slot").str()] = i + 1;
  }
  std::vector<std::string> names;
  for (auto &[name, result] : resultOf)
    names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "down/gradient_amax", "down/input_amax", "left/gradient_amax",
                       "left/input_amax", "right/gradient_amax", "square#2/gradient_amax",
                       "square#2/input_amax", "square/gradient_amax", "square/input_amax"}));
  llvm::SmallVector<HostTensor> large = run(quantized, 100), larger = run(quantized, 1000);
  double tokens = 0; // the first activation is rows of the table
  for (double token : arguments[parameters].values)
    for (int64_t column = 0; column < 8; ++column)
      tokens = std::max(tokens, std::abs(arguments[0][static_cast<int64_t>(token) * 8 + column]));
  EXPECT_EQ(large[resultOf["left/input_amax"]][0], tokens);
  for (auto &[name, result] : resultOf) {
    EXPECT_GT(large[result][0], 0) << name;
    EXPECT_NEAR(large[result][0], larger[result][0], 1e-12) << name;
  }
}

/// A scale too small cuts what it scales: the loss differs, so the records are what scales are of.
TEST_F(QuantizedModel, WhatOutgrowsItsRecordIsCut) {
  build(/*delayed=*/true);
  double whole = run(quantized, 100)[0][0], cut = run(quantized, 1e-3)[0][0];
  EXPECT_TRUE(std::isfinite(cut));
  EXPECT_GT(std::abs(cut - whole), 1e-3 * whole);
}

} // namespace

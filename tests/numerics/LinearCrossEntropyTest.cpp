// Logits and loss in chunks: the joined op, its gradient and its expansion against matmul and
// cross_entropy on whole logits, in f64.
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "ir/Nn.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

namespace {

using namespace gradc::nn;
using namespace gradc::test;
using mlir::func::FuncOp;

/// @loss of a model with a tied table, a norm before the head, and the given end, which computes
/// %loss from %n, %table and %targets.
std::string modelWith(const std::string &end) {
  return R"(
func.func @loss(
    %table: tensor<11x6xf32> {nn.param = {name = "table"}},
    %norm: tensor<6xf32> {nn.param = {name = "norm"}},
    %tokens: tensor<14xi32>, %targets: tensor<14xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<14xi32>, tensor<11x6xf32> -> tensor<14x6xf32>
  %n, %r = nn.rms_norm %x, %norm eps 0.1 : tensor<14x6xf32>, tensor<6xf32> -> tensor<14x1xf32>
)" + end +
         R"(
  return %loss : tensor<f32>
})";
}

constexpr const char *dense = R"(
  %logits = nn.matmul %n, %table transpose_rhs : tensor<14x6xf32>, tensor<11x6xf32> -> tensor<14x11xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<14x11xf32>, tensor<14xi32> -> tensor<14x1xf32>, tensor<14x1xf32>
)";
constexpr const char *sum = "  %loss = nn.sum %each : tensor<14x1xf32>\n";
// A loss of losses: what the logits' gradient is multiplied by depends on the loss itself.
constexpr const char *squares = R"(
  %squares = nn.mul %each, %each : tensor<14x1xf32>, tensor<14x1xf32>
  %loss = nn.sum %squares : tensor<14x1xf32>
)";

/// The module after the passes that make a chunked backward of @loss.
void chunk(ParsedModule &parsed, int64_t rows) {
  mlir::PassManager passes(&parsed.context());
  passes.addNestedPass<FuncOp>(gradc::createJoinLossPass());
  passes.addPass(gradc::createAutodiffPass());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addNestedPass<FuncOp>(gradc::createChunkLossPass({.rows = rows}));
  ASSERT_TRUE(llvm::succeeded(passes.run(parsed.module()))) << parsed.diagnostics();
}

void differentiate(ParsedModule &parsed) {
  mlir::PassManager passes(&parsed.context());
  passes.addPass(gradc::createAutodiffPass());
  ASSERT_TRUE(llvm::succeeded(passes.run(parsed.module()))) << parsed.diagnostics();
}

template <typename Op> int count(FuncOp function) {
  int ops = 0;
  function.walk([&](Op) { ++ops; });
  return ops;
}

/// The most elements of any value in the function that is no argument.
int64_t largestValue(FuncOp function) {
  int64_t most = 0;
  function.walk([&](mlir::Operation *op) {
    for (mlir::Type type : op->getResultTypes())
      most = std::max(most, mlir::cast<mlir::RankedTensorType>(type).getNumElements());
  });
  return most;
}

void expectEqual(const HostTensor &actual, const HostTensor &expected, const std::string &what) {
  Comparison comparison = compareValues(actual, expected, {.norm = 1e-12, .absolute = 1e-14});
  EXPECT_TRUE(comparison.passed) << what << ": " << comparison.report;
}

/// Compares @loss and @loss_and_gradients of two modules on the same arguments.
void expectSameModel(ParsedModule &actual, ParsedModule &expected,
                     llvm::SmallVector<HostTensor> arguments, const std::string &what) {
  auto compare = [&](const char *name) {
    auto values = interpret(actual.function(name), arguments);
    auto references = interpret(expected.function(name), arguments);
    ASSERT_TRUE(llvm::succeeded(values)) << actual.diagnostics();
    ASSERT_TRUE(llvm::succeeded(references)) << expected.diagnostics();
    ASSERT_EQ(values->size(), references->size());
    for (auto [i, pair] : llvm::enumerate(llvm::zip(*values, *references)))
      expectEqual(std::get<0>(pair), std::get<1>(pair),
                  what + ", @" + name + " #" + std::to_string(i));
  };
  compare("loss");
  arguments.push_back(tensorOf({}, {0.7}));
  compare("loss_and_gradients");
}

/// Rows of a chunk: chunks of 14 rows are then 1, 2, 3 (the last smaller), 7 and 14.
constexpr int64_t sizes[] = {0, 7, 5, 2, 1, 100};

TEST(LinearCrossEntropy, ChunksGiveWhatWholeLogitsGive) {
  ParsedModule reference(modelWith(std::string(dense) + sum));
  ASSERT_TRUE(reference.ok()) << reference.diagnostics();
  differentiate(reference);
  auto arguments = randomArguments(reference.function("loss"), 3);
  ASSERT_TRUE(llvm::is_contained(arguments[3].values, -1)) << "no row without a label";
  for (int64_t rows : sizes) {
    ParsedModule parsed(modelWith(std::string(dense) + sum));
    chunk(parsed, rows);
    FuncOp backward = parsed.function("loss_and_gradients");
    int64_t chunks = rows == 0 || rows > 14 ? 1 : (14 + rows - 1) / rows;
    // Three products a chunk: nothing computes logits twice.
    EXPECT_EQ(count<MatmulOp>(backward), 3 * chunks);
    EXPECT_EQ(count<MatmulOp>(parsed.function("loss")), chunks);
    EXPECT_EQ(largestValue(backward), chunks == 1 ? 14 * 11 : 14 * 6) << rows;
    expectSameModel(parsed, reference, arguments, std::to_string(rows) + " rows");
  }
}

TEST(LinearCrossEntropy, RowsWithoutLabelsHaveNoPart) {
  ParsedModule reference(modelWith(std::string(dense) + sum));
  differentiate(reference);
  auto all = randomArguments(reference.function("loss"), 4);
  for (int64_t rows : sizes) {
    ParsedModule parsed(modelWith(std::string(dense) + sum));
    chunk(parsed, rows);
    // A chunk of none, and none at all.
    for (int64_t ignored : {5, 14}) {
      auto arguments = all;
      for (int64_t row = 0; row < ignored; ++row)
        arguments[3][row] = row % 2 ? -1 : -100;
      expectSameModel(parsed, reference, arguments, "ignored rows");
      llvm::SmallVector<HostTensor> withSeed(arguments);
      withSeed.push_back(tensorOf({}, {1}));
      auto results = interpret(parsed.function("loss_and_gradients"), withSeed);
      ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
      for (const HostTensor &result : *results)
        EXPECT_EQ(llvm::all_of(result.values, [](double value) { return value == 0; }),
                  ignored == 14);
    }
  }
}

TEST(LinearCrossEntropy, AGradientThatDependsOnTheLoss) {
  ParsedModule reference(modelWith(std::string(dense) + squares));
  ASSERT_TRUE(reference.ok()) << reference.diagnostics();
  differentiate(reference);
  auto arguments = randomArguments(reference.function("loss"), 5);
  for (int64_t rows : sizes) {
    ParsedModule parsed(modelWith(std::string(dense) + squares));
    chunk(parsed, rows);
    int64_t chunks = rows == 0 || rows > 14 ? 1 : (14 + rows - 1) / rows;
    FuncOp backward = parsed.function("loss_and_gradients");
    EXPECT_EQ(count<MatmulOp>(backward), 4 * chunks);
    int again = 0;
    backward.walk([&](MatmulOp op) { again += op->hasAttr("nn.recomputed"); });
    EXPECT_EQ(again, chunks);
    expectSameModel(parsed, reference, arguments, std::to_string(rows) + " rows");
  }
}

/// The joined op where a model is written with it, both ways to lay a weight out.
TEST(LinearCrossEntropy, TheOpIsWhatItStandsFor) {
  for (bool transposed : {false, true}) {
    std::string weight = transposed ? "tensor<9x4xf32>" : "tensor<4x9xf32>";
    std::string head = "func.func @loss(%w: " + weight +
                       R"( {nn.param = {name = "w"}}, %x: tensor<5x4xf32> {nn.param = {name = "x"}},
      %tokens: tensor<5xi32>, %targets: tensor<5xi32>) -> tensor<f32> {)";
    std::string end = R"(
  %loss = nn.sum %each : tensor<5x1xf32>
  return %loss : tensor<f32> })";
    ParsedModule reference(head + "\n%logits = nn.matmul %x, %w " +
                           (transposed ? "transpose_rhs" : "") + " : tensor<5x4xf32>, " + weight +
                           R"( -> tensor<5x9xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<5x9xf32>, tensor<5xi32> -> tensor<5x1xf32>, tensor<5x1xf32>)" +
                           end);
    ParsedModule joined(head + "\n%each = nn.linear_cross_entropy %x, %w, %targets " +
                        (transposed ? "transpose_weight" : "") + " : tensor<5x4xf32>, " + weight +
                        ", tensor<5xi32> -> tensor<5x1xf32>" + end);
    ASSERT_TRUE(reference.ok()) << reference.diagnostics();
    ASSERT_TRUE(joined.ok()) << joined.diagnostics();
    differentiate(reference);
    differentiate(joined);
    auto arguments = randomArguments(reference.function("loss"), 6);
    expectSameModel(joined, reference, arguments, transposed ? "transposed" : "plain");
  }
}

TEST(LinearCrossEntropy, ATargetBeyondTheColumnsIsRefused) {
  ParsedModule parsed(
      R"(func.func @f(%x: tensor<2x1xf32>, %w: tensor<1x3xf32>, %t: tensor<2xi32>) -> tensor<2x1xf32> {
    %0 = nn.linear_cross_entropy %x, %w, %t : tensor<2x1xf32>, tensor<1x3xf32>, tensor<2xi32> -> tensor<2x1xf32>
    return %0 : tensor<2x1xf32> })");
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto results = interpret(parsed.function(),
                           {tensorOf({2, 1}, {1}), tensorOf({1, 3}, {1}), tensorOf({2}, {0, 7})});
  EXPECT_TRUE(llvm::failed(results));
  EXPECT_EQ(parsed.diagnostics(),
            "'nn.linear_cross_entropy' op expected targets below 3, got: 7 at row 1\n");
}

} // namespace

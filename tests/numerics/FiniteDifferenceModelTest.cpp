// The autodiff pass on a whole model against central differences of its loss, in f64.
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "tests/numerics/InterpreterHarness.h"

#include <gtest/gtest.h>

namespace {

using namespace gradc::nn;
using namespace gradc::test;

// One block with what makes reverse accumulation hard: a tied table (read by two ops of different
// kinds), residuals, dropout, siblings sliced from one product, a gated product of two views of a
// value, and a parameter that gets no gradient.
const char *const model = R"(
func.func @loss(
    %table: tensor<7x8xf32> {nn.param = {name = "table"}},
    %norm: tensor<8xf32> {nn.param = {name = "norm"}},
    %qkv: tensor<16x8xf32> {nn.param = {name = "qkv"}},
    %out: tensor<8x8xf32> {nn.param = {name = "out"}},
    %gate: tensor<8x12xf32> {nn.param = {name = "gate"}},
    %down: tensor<6x8xf32> {nn.param = {name = "down"}},
    %unused: tensor<3xf32> {nn.param = {name = "unused"}},
    %cos: tensor<5x1xf32>, %sin: tensor<5x1xf32>,
    %tokens: tensor<10xi32>, %targets: tensor<10xi32>) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : tensor<10xi32>, tensor<7x8xf32> -> tensor<10x8xf32>
  %n, %r = nn.rms_norm %x, %norm eps 0.1 : tensor<10x8xf32>, tensor<8xf32> -> tensor<10x1xf32>
  %p = nn.matmul %n, %qkv transpose_rhs : tensor<10x8xf32>, tensor<16x8xf32> -> tensor<10x16xf32>
  %q = nn.slice %p at 0 : tensor<10x16xf32> to tensor<10x8xf32>
  %k = nn.slice %p at 8 : tensor<10x16xf32> to tensor<10x4xf32>
  %v = nn.slice %p at 12 : tensor<10x16xf32> to tensor<10x4xf32>
  %qr = nn.rope %q, %cos, %sin heads 4 : tensor<10x8xf32>, tensor<5x1xf32>
  %kr = nn.rope %k, %cos, %sin heads 2 : tensor<10x4xf32>, tensor<5x1xf32>
  %a, %lse = nn.attention %qr, %kr, %v batch 2 heads 4 kv_heads 2 scale 0.7 causal : tensor<10x8xf32>, tensor<10x4xf32>, tensor<10x4xf32> -> tensor<10x8xf32>, tensor<2x4x5xf32>
  %o = nn.matmul %a, %out : tensor<10x8xf32>, tensor<8x8xf32> -> tensor<10x8xf32>
  %c3 = nn.constant dense<3> : tensor<i32>
  %od = nn.dropout %o rate 0.2 random(%c3, %c3, %c3, %c3) : tensor<10x8xf32>
  %h = nn.add %x, %od : tensor<10x8xf32>, tensor<10x8xf32>
  %m, %r2 = nn.rms_norm %h, %norm eps 0.1 : tensor<10x8xf32>, tensor<8xf32> -> tensor<10x1xf32>
  %both = nn.matmul %m, %gate : tensor<10x8xf32>, tensor<8x12xf32> -> tensor<10x12xf32>
  %left = nn.slice %both at 0 : tensor<10x12xf32> to tensor<10x6xf32>
  %right = nn.slice %both at 6 : tensor<10x12xf32> to tensor<10x6xf32>
  %act = nn.activation silu %left : tensor<10x6xf32>
  %gated = nn.mul %act, %right : tensor<10x6xf32>, tensor<10x6xf32>
  %mlp = nn.matmul %gated, %down : tensor<10x6xf32>, tensor<6x8xf32> -> tensor<10x8xf32>
  %y = nn.add %h, %mlp : tensor<10x8xf32>, tensor<10x8xf32>
  %logits = nn.matmul %y, %table transpose_rhs : tensor<10x8xf32>, tensor<7x8xf32> -> tensor<10x7xf32>
  %each, %lse2 = nn.cross_entropy %logits, %targets : tensor<10x7xf32>, tensor<10xi32> -> tensor<10x1xf32>, tensor<10x1xf32>
  %loss = nn.sum %each : tensor<10x1xf32>
  return %loss : tensor<f32>
})";

TEST(FiniteDifferenceModel, AutodiffGivesTheGradientOfEveryParameter) {
  ParsedModule parsed(model);
  ASSERT_TRUE(parsed.ok()) << parsed.diagnostics();
  mlir::PassManager passes(&parsed.context());
  passes.addPass(gradc::createAutodiffPass());
  ASSERT_TRUE(llvm::succeeded(passes.run(parsed.module()))) << parsed.diagnostics();
  mlir::func::FuncOp loss = parsed.function("loss"),
                     backward = parsed.function("loss_and_gradients");
  ASSERT_TRUE(loss && backward);

  llvm::SmallVector<HostTensor> arguments = randomArguments(loss, 5);
  HostTensor seed = tensorOf({}, {0.3});
  llvm::SmallVector<HostTensor> withSeed(arguments);
  withSeed.push_back(seed);
  auto results = interpret(backward, withSeed);
  ASSERT_TRUE(llvm::succeeded(results)) << parsed.diagnostics();
  constexpr unsigned parameters = 7, unused = 6;
  ASSERT_EQ(results->size(), parameters + 1);
  for (unsigned i = 0; i < parameters; ++i) {
    HostTensor difference = centralDifferences(loss, arguments, i, seed);
    Comparison comparison =
        compareValues((*results)[i + 1], difference, {.norm = 1e-6, .absolute = 1e-9});
    EXPECT_TRUE(comparison.passed) << "parameter " << i << ": " << comparison.report;
    bool isZero = llvm::all_of(difference.values, [](double x) { return x == 0; });
    EXPECT_EQ(isZero, i == unused) << "parameter " << i;
  }
}

} // namespace

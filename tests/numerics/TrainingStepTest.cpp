// The programs of an executable against @loss_and_gradients and the optimizer's formula, in f64.
#include "ir/Compare.h"
#include "ir/Interpreter.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "tests/numerics/InterpreterHarness.h"
#include "tests/numerics/Programs.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace gradc::nn;
using namespace gradc::test;

// A norm (whose weight does not decay), a matrix, dropout, and rows without a label.
const char *const model = R"(
func.func @loss(
    %table: tensor<5x4xf32> {nn.param = {name = "table", decay = true}},
    %norm: tensor<4xf32> {nn.param = {name = "norm", decay = false}},
    %head: tensor<4x5xf32> {nn.param = {name = "head", decay = true}},
    %tokens: tensor<6xi32>, %targets: tensor<6xi32>,
    %seed: tensor<i32>, %step: tensor<i32>, %first: tensor<i32>) -> tensor<f32> {
  %stream = nn.constant dense<1> : tensor<i32>
  %x = nn.embedding %tokens, %table : tensor<6xi32>, tensor<5x4xf32> -> tensor<6x4xf32>
  %n, %r = nn.rms_norm %x, %norm eps 0.1 : tensor<6x4xf32>, tensor<4xf32> -> tensor<6x1xf32>
  %d = nn.dropout %n rate 0.4 random(%seed, %step, %first, %stream) : tensor<6x4xf32>
  %logits = nn.matmul %d, %head : tensor<6x4xf32>, tensor<4x5xf32> -> tensor<6x5xf32>
  %each, %lse = nn.cross_entropy %logits, %targets : tensor<6x5xf32>, tensor<6xi32> -> tensor<6x1xf32>, tensor<6x1xf32>
  %loss = nn.sum %each : tensor<6x1xf32>
  return %loss : tensor<f32>
})";
constexpr int64_t microbatches = 2, tokens = 6;

class TrainingStep : public testing::Test {
protected:
  TrainingStep() : parsed(model), reference(model) {}

  void SetUp() override {
    ASSERT_TRUE(parsed.ok() && reference.ok()) << parsed.diagnostics();
    mlir::PassManager passes(&parsed.context()), backward(&reference.context());
    passes.addPass(gradc::createAutodiffPass());
    passes.addPass(
        gradc::createTrainingStepPass({.optimizer = "adamw", .gradAccum = microbatches}));
    backward.addPass(gradc::createAutodiffPass());
    ASSERT_TRUE(llvm::succeeded(passes.run(parsed.module()))) << parsed.diagnostics();
    ASSERT_TRUE(llvm::succeeded(backward.run(reference.module()))) << reference.diagnostics();

    auto random = randomArguments(reference.function("loss"), 3);
    for (auto [i, name] : llvm::enumerate(parameters)) {
      values[name] = random[i];
      for (const char *part : {"/exp_avg", "/exp_avg_sq"}) {
        HostTensor state = random[i];
        for (double &x : state.values)
          x = 0.01 * x * x;
        values[name + part] = state;
      }
    }
    values["tokens"] = tensorOf({microbatches, tokens}, {0, 1, 2, 3, 4, 0, 2, 2, 4, 1, 0, 3});
    values["targets"] = tensorOf({microbatches, tokens}, {1, -1, 3, 4, 0, 2, 2, 4, -1, -1, 3, 1});
    values["seed"] = tensorOf({}, {11});
    values["step"] = tensorOf({}, {4});
    values["first_row"] = tensorOf({microbatches}, {0, tokens});
    const std::pair<const char *, double> scalars[] = {
        {"learning_rate", 0.03},   {"beta1", 0.9},
        {"beta2", 0.95},           {"eps", 1e-3},
        {"weight_decay", 0.1},     {"bias_correction1", 0.3},
        {"bias_correction2", 0.2}, {"clip_grad", 0.05}};
    for (auto [name, value] : scalars)
      values[name] = tensorOf({}, {value});
  }

  double scalar(const char *name) const { return values.at(name)[0]; }

  /// Loss and gradients of the whole step by @loss_and_gradients, microbatch by microbatch.
  Named expectedGradients() {
    double valid = 0;
    for (double target : values["targets"].values)
      valid += target >= 0;
    Named sums{{"valid", tensorOf({}, {valid})}, {"loss", tensorOf({}, {0})}};
    for (int64_t batch = 0; batch < microbatches; ++batch) {
      llvm::SmallVector<HostTensor> arguments;
      for (const std::string &name : parameters)
        arguments.push_back(values[name]);
      for (const char *name : {"tokens", "targets"}) {
        auto begin = values[name].values.begin() + batch * tokens;
        arguments.push_back(tensorOf({tokens}, std::vector<double>(begin, begin + tokens)));
      }
      arguments.append({values["seed"], values["step"], tensorOf({}, {double(batch * tokens)}),
                        tensorOf({}, {1 / valid})});
      auto results = interpret(reference.function("loss_and_gradients"), arguments);
      EXPECT_TRUE(llvm::succeeded(results)) << reference.diagnostics();
      sums["loss"][0] += (*results)[0][0] / valid;
      for (auto [i, name] : llvm::enumerate(parameters)) {
        HostTensor &sum = sums[name];
        if (sum.values.empty())
          sum = HostTensor((*results)[i + 1].shape);
        for (int64_t e = 0; e < sum.size(); ++e)
          sum[e] += (*results)[i + 1][e];
      }
    }
    return sums;
  }

  void expectEqual(const HostTensor &actual, const HostTensor &expected, const std::string &what) {
    Comparison comparison = compareValues(actual, expected, {.norm = 1e-12});
    EXPECT_TRUE(comparison.passed) << what << ": " << comparison.report;
  }

  ParsedModule parsed, reference;
  const std::vector<std::string> parameters{"table", "norm", "head"};
  Named values;
};

TEST_F(TrainingStep, GradientsAreTheSumOverTheMicrobatches) {
  Named expected = expectedGradients(), actual = runProgram(parsed.function("gradients"), values);
  EXPECT_EQ(actual.size(), expected.size());
  for (auto &[name, tensor] : expected)
    expectEqual(actual.at(name), tensor, name);
}

TEST_F(TrainingStep, UpdatesByTheOptimizersFormulaAfterClipping) {
  Named gradients = expectedGradients(), actual = runProgram(parsed.function("train_step"), values);
  double squares = 0;
  for (const std::string &name : parameters)
    for (double g : gradients[name].values)
      squares += g * g;
  double norm = std::sqrt(squares), clip = scalar("clip_grad") / (norm + 1e-6);
  ASSERT_LT(clip, 1); // or clipping would not be tested
  expectEqual(actual.at("grad_norm"), tensorOf({}, {norm}), "grad_norm");
  expectEqual(actual.at("loss"), gradients["loss"], "loss");
  for (const std::string &name : parameters) {
    HostTensor p = values[name], m = values[name + "/exp_avg"], v = values[name + "/exp_avg_sq"];
    double decay = name == "norm" ? 0 : scalar("weight_decay");
    for (int64_t i = 0; i < p.size(); ++i) {
      double g = gradients[name][i] * clip, rate = scalar("learning_rate");
      m[i] = scalar("beta1") * m[i] + (1 - scalar("beta1")) * g;
      v[i] = scalar("beta2") * v[i] + (1 - scalar("beta2")) * g * g;
      double first = m[i] / scalar("bias_correction1"), second = v[i] / scalar("bias_correction2");
      p[i] -= rate * decay * p[i] + rate * first / (std::sqrt(second) + scalar("eps"));
    }
    expectEqual(actual.at(name), p, name);
    expectEqual(actual.at(name + "/exp_avg"), m, name + "/exp_avg");
    expectEqual(actual.at(name + "/exp_avg_sq"), v, name + "/exp_avg_sq");
  }
}

TEST_F(TrainingStep, EvaluationDropsNothing) {
  auto withoutDropout = [](std::string text) {
    size_t at = text.find("nn.matmul %d");
    return text.replace(at, 12, "nn.matmul %n");
  };
  ParsedModule plain(withoutDropout(model));
  ASSERT_TRUE(plain.ok()) << plain.diagnostics();
  Named row = values;
  for (const char *name : {"tokens", "targets"})
    row[name] =
        tensorOf({tokens}, {values[name].values.begin(), values[name].values.begin() + tokens});
  llvm::SmallVector<HostTensor> arguments;
  for (const std::string &name : parameters)
    arguments.push_back(values[name]);
  arguments.append({row["tokens"], row["targets"], row["seed"], row["step"], tensorOf({}, {0})});
  auto expected = interpret(plain.function("loss"), arguments);
  ASSERT_TRUE(llvm::succeeded(expected));
  expectEqual(runProgram(parsed.function("eval_loss"), row).at("loss"), (*expected)[0], "loss");
}

TEST_F(TrainingStep, RecomputeChangesNoValue) {
  Named expected = expectedGradients();
  mlir::PassManager passes(&reference.context());
  passes.addPass(gradc::createRecomputePass({.mode = "full"}));
  ASSERT_TRUE(llvm::succeeded(passes.run(reference.module()))) << reference.diagnostics();
  int copies = 0;
  reference.module().walk([&](mlir::Operation *op) { copies += op->hasAttr("nn.recomputed"); });
  EXPECT_GT(copies, 0);
  Named actual = expectedGradients();
  for (auto &[name, tensor] : expected)
    expectEqual(actual.at(name), tensor, name);
}

} // namespace

// --verify-values finds passes that change values, and says how much it compared.
#include "ir/Nn.h"
#include "mlir/Pass/Pass.h"
#include "tests/numerics/InterpreterHarness.h"
#include "tools/driver/VerifyValues.h"

#include <gtest/gtest.h>

namespace {

using namespace gradc::test;

const char *const module = R"(
  func.func @kept(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = nn.exp %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @scaled(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = nn.scale %x by 2.0 : tensor<4xf32>
    return %x, %0 : tensor<4xf32>, tensor<4xf32>
  })";

/// Multiplies the factor of every nn.scale.
template <typename Op>
struct ChangeFactor : mlir::PassWrapper<ChangeFactor<Op>, mlir::OperationPass<Op>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChangeFactor)
  explicit ChangeFactor(double byFactor) : by(byFactor) {}
  llvm::StringRef getArgument() const override { return "change-factor"; }
  void runOnOperation() override {
    this->getOperation()->walk([&](gradc::nn::ScaleOp op) {
      op.setFactor(llvm::APFloat(op.getFactor().convertToDouble() * by));
    });
  }
  double by;
};

/// Gives every function another name or another type.
struct Rename : mlir::PassWrapper<Rename, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Rename)
  llvm::StringRef getArgument() const override { return "rename"; }
  void runOnOperation() override {
    auto functions = llvm::to_vector(getOperation().getOps<mlir::func::FuncOp>());
    functions[0].setName("other");
    (void)functions[1].insertArgument(1, functions[1].getArgumentTypes()[0], {},
                                      functions[1].getLoc());
  }
};

struct Outcome {
  bool passed, flagged;
  std::string diagnostics, printed;
};

Outcome run(llvm::function_ref<void(mlir::PassManager &)> addPasses) {
  ParsedModule parsed(module);
  EXPECT_TRUE(parsed.ok()) << parsed.diagnostics();
  auto failed = std::make_shared<std::atomic<bool>>(false);
  mlir::PassManager passes(&parsed.context());
  addPasses(passes);
  gradc::addValueVerification(passes, failed);
  testing::internal::CaptureStderr();
  bool passed = llvm::succeeded(passes.run(parsed.module()));
  return {passed, *failed, parsed.diagnostics(), testing::internal::GetCapturedStderr()};
}

TEST(InterpreterVerifyValues, APassThatKeepsValuesPasses) {
  Outcome outcome = run([](mlir::PassManager &passes) {
    passes.addPass(std::make_unique<ChangeFactor<mlir::ModuleOp>>(1.0));
  });
  EXPECT_TRUE(outcome.passed);
  EXPECT_FALSE(outcome.flagged);
  EXPECT_EQ(outcome.printed, "verify-values: pass 'change-factor': 2 functions compared\n");
}

TEST(InterpreterVerifyValues, AChangedResultIsFoundAndNamed) {
  Outcome outcome = run([](mlir::PassManager &passes) {
    passes.addPass(std::make_unique<ChangeFactor<mlir::ModuleOp>>(1 + 1e-8));
  });
  EXPECT_TRUE(outcome.flagged);
  EXPECT_NE(outcome.diagnostics.find(
                "verify-values: pass 'change-factor' changed result #1 of @scaled: expected "),
            std::string::npos)
      << outcome.diagnostics;
  EXPECT_EQ(outcome.diagnostics.find("@kept"), std::string::npos) << outcome.diagnostics;
}

TEST(InterpreterVerifyValues, PassesOnFunctionsAreCheckedToo) {
  Outcome outcome = run([](mlir::PassManager &passes) {
    passes.addNestedPass<mlir::func::FuncOp>(
        std::make_unique<ChangeFactor<mlir::func::FuncOp>>(0.5));
  });
  EXPECT_TRUE(outcome.flagged);
  EXPECT_EQ(outcome.printed, "verify-values: pass 'change-factor': 1 functions compared\n"
                             "verify-values: pass 'change-factor': 1 functions compared\n");
}

TEST(InterpreterVerifyValues, WhatIsNotComparedIsCounted) {
  Outcome outcome =
      run([](mlir::PassManager &passes) { passes.addPass(std::make_unique<Rename>()); });
  EXPECT_TRUE(outcome.passed);
  EXPECT_FALSE(outcome.flagged);
  EXPECT_EQ(outcome.printed, "verify-values: pass 'rename': 0 functions compared, 1 of another "
                             "type, 1 new, 1 gone or not compared\n");
}

} // namespace

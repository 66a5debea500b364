// Generated matrix products in f32 against double loops: shapes that fill no tile, all transposes,
// batches, gaps between rows, accumulation; on the host's vectors and on narrower ones.
#include "tests/numerics/GemmHarness.h"

#include <gtest/gtest.h>

#include <tuple>

namespace {

using namespace gradc::codegen;

/// All of them, written and accumulated, for every target.
void checkAll(const std::vector<GemmSpec> &specs) {
  std::vector<GemmSpec> both;
  for (GemmSpec spec : specs)
    for (bool accumulate : {false, true}) {
      spec.accumulate = accumulate;
      both.push_back(spec);
    }
  for (const CpuTarget &target : gemmTargets())
    checkProducts(both, target);
}

TEST(GemmKernel, ShapesThatFillNoTile) {
  const int64_t shapes[][3] = {{1, 1, 1},    {7, 5, 3},     {6, 16, 8},   {13, 65, 9},
                               {40, 97, 48}, {97, 64, 257}, {1, 130, 70}, {130, 1, 33}};
  std::vector<GemmSpec> specs;
  for (const auto &[m, n, k] : shapes)
    llvm::append_range(specs, allTransposes(m, n, k));
  checkAll(specs);
}

TEST(GemmKernel, ManySlicesAndTasks) {
  std::vector<GemmSpec> specs = allTransposes(331, 203, 777);
  for (const GemmSpec &spec : specs)
    EXPECT_GE(gemmTaskCount(spec), 8);
  checkAll(specs);
}

TEST(GemmKernel, WideVocabulary) {
  GemmSpec weights = makeSpec(50257, 24, 4, true, false);
  weights.accumulate = true;
  checkProducts(
      {makeSpec(768, 50257, 5, false, true), weights, makeSpec(24, 20, 50257, false, false)},
      CpuTarget::host());
}

TEST(GemmKernel, GapsBetweenRows) { checkAll(allTransposes(50, 70, 90, 11)); }

TEST(GemmKernel, Batches) {
  std::vector<GemmSpec> specs = allTransposes(37, 29, 31, 3, 5);
  specs.push_back(makeSpec(40, 24, 16, false, false));
  specs.back().batch = 3;
  specs.back().b.batchStride = 0;
  checkAll(specs);
}

TEST(GemmKernel, HeadsThatInterleave) {
  // [token, head, channel]: a batch step is a step of columns.
  GemmSpec spec = makeSpec(33, 17, 20, false, false);
  spec.batch = 4;
  spec.a = {4 * 20, 1, 20};
  spec.c = {4 * 17, 1, 17};
  checkAll({spec});
}

TEST(GemmKernel, OneModuleSharesItsFunctions) {
  const CpuTarget target = CpuTarget::host();
  CompiledKernel kernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitGemm(module, name, makeSpec(64, 64, 64, false, false), target);
                          emitGemm(module, "second", makeSpec(128, 96, 32, false, false), target);
                          emitGemm(module, "third", makeSpec(96, 768, 32, true, true), target);
                          // Three products, four ways to pack, one block.
                          EXPECT_EQ(std::distance(module.begin(), module.end()), 8);
                        });
  EXPECT_TRUE(kernel);
}

TEST(GemmKernel, BitsDoNotDependOnTheThreads) {
  const CpuTarget target = CpuTarget::host();
  GemmProblem problem(makeSpec(331, 403, 777, true, false));
  auto run = [&](int64_t threads) {
    problem.spec.threads = threads;
    CompiledKernel kernel(target,
                          [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                            emitGemm(module, name, problem.spec, target);
                          });
    return problem.run(kernel, 0, false);
  };
  std::vector<float> one = run(1);
  EXPECT_LT(gemmTaskCount(problem.spec), 16);
  EXPECT_EQ(run(16), one);
  EXPECT_GE(gemmTaskCount(problem.spec), 16);
  EXPECT_EQ(run(24), one);
}

TEST(GemmKernel, TasksAreEnoughAndFollowFromTheShape) {
  EXPECT_EQ(gemmTaskCount(makeSpec(1, 1, 1, false, false)), 1);
  for (auto [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1024, 2304, 768},
                         {1024, 768, 768},
                         {768, 768, 1024},
                         {1024, 768, 50257},
                         {50257, 768, 1024},
                         {1024, 50257, 768}}) {
    int64_t tasks = gemmTaskCount(makeSpec(m, n, k, false, false));
    EXPECT_GE(tasks, 8) << m << " x " << n << " x " << k;
    EXPECT_LE(tasks, 256) << m << " x " << n << " x " << k;
    EXPECT_EQ(tasks, gemmTaskCount(makeSpec(m, n, k, true, true)));
  }
}

TEST(GemmKernel, VerifiesSpecs) {
  GemmSpec spec = makeSpec(3, 4, 5, false, false);
  EXPECT_EQ(verify(spec), "");
  spec.k = 0;
  EXPECT_EQ(verify(spec), "matrix product: expected positive sizes, got: 3 x 4 x 0, batch 1");
  spec = makeSpec(3, 4, 5, false, false);
  spec.c = {1, 3, 0};
  EXPECT_EQ(verify(spec), "matrix product: c has strides 1, 3, 0; expected one of the first two to "
                          "be 1 (the second for c) and none negative");
  spec = makeSpec(3, 4, 5, false, false);
  spec.a = {10, 2, 0};
  EXPECT_NE(verify(spec), "");
  spec = makeSpec(3, 4, 5, false, false);
  spec.b.batchStride = -1;
  EXPECT_NE(verify(spec), "");
  spec = makeSpec(3, 4, 5, false, false);
  spec.b.dtype = gradc::row::Dtype::i32;
  EXPECT_EQ(verify(spec), "matrix product: b is i32; expected f32, bf16 or f16");
  spec = makeSpec(3, 4, 5, false, false);
  spec.c.dtype = gradc::row::Dtype::bf16;
  EXPECT_EQ(verify(spec), "");
  spec.accumulate = true;
  EXPECT_NE(verify(spec), "");
  spec = makeSpec(3, 4, 5, false, false);
  spec.a.dtype = gradc::row::Dtype::f8e4m3;
  spec.b.dtype = gradc::row::Dtype::f8e5m2;
  EXPECT_EQ(verify(spec), "matrix product: a is f8e4m3; expected fp8 for a and b where they are "
                          "scaled, and nowhere else");
  spec.scaled = true;
  EXPECT_EQ(verify(spec), "");
  spec.c.dtype = gradc::row::Dtype::f8e4m3;
  EXPECT_NE(verify(spec), "");
}

} // namespace

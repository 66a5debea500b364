// Products of a few rows, which are made without packing: against double loops, in every type, and
// the same bits however many columns there are.
#include "codegen/cpu/GemmThin.h"

#include "tests/numerics/GemmHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {

using namespace gradc::codegen;
using gradc::row::Dtype;

CompiledKernel compile(const GemmSpec &spec, const CpuTarget &target) {
  return CompiledKernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitGemm(module, name, spec, target);
                        });
}

TEST(GemmThin, EveryNumberOfRows) {
  std::vector<GemmSpec> specs;
  for (int64_t rows : {1, 2, 3, 4})
    for (auto [columns, depth] : {std::pair<int64_t, int64_t>{1, 1}, {5, 7}, {67, 259}})
      for (GemmSpec spec : allTransposes(rows, columns, depth, 3, 2))
        for (bool accumulate : {false, true}) {
          spec.accumulate = accumulate;
          EXPECT_TRUE(isThin(spec));
          specs.push_back(spec);
        }
  for (const CpuTarget &target : hostTargets())
    checkProducts(specs, target);
}

TEST(GemmThin, ManyTasks) {
  std::vector<GemmSpec> specs = allTransposes(2, 2100, 801);
  for (const GemmSpec &spec : specs)
    EXPECT_GE(gemmTaskCount(spec), 8);
  for (const CpuTarget &target : gemmTargets())
    checkProducts(specs, target);
}

TEST(GemmThin, EveryType) {
  std::vector<GemmSpec> specs;
  for (Dtype operand : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2})
    for (Dtype result : {Dtype::f32, Dtype::bf16, Dtype::f16})
      for (GemmSpec spec : allTransposes(3, 85, 141, 1)) {
        spec.a.dtype = spec.b.dtype = operand, spec.c.dtype = result;
        spec.roundInputs = InputRounding::tf32; // of those in f32
        spec.scaled = gradc::row::byteSize(operand) == 1;
        specs.push_back(spec);
      }
  for (const CpuTarget &target : hostTargets())
    checkProducts(specs, target);
}

TEST(GemmThin, DepthTooLargeForTheStackIsPacked) {
  GemmSpec spec = makeSpec(4, 9, 40000, false, true);
  EXPECT_FALSE(isThin(spec));
  EXPECT_TRUE(isThin(makeSpec(4, 9, 30000, false, true)));
  EXPECT_FALSE(isThin(makeSpec(5, 9, 30, false, true)));
  checkProducts({spec}, CpuTarget::host());
}

TEST(GemmThin, SameBitsHoweverManyColumns) {
  const CpuTarget target = CpuTarget::host();
  for (const GemmSpec &wide : allTransposes(3, 1500, 300)) {
    GemmSpec narrow = wide;
    narrow.n = 100; // the first columns of the same matrices, cut into other tasks
    EXPECT_NE(thinColumns(wide), thinColumns(narrow));
    CompiledKernel wideKernel = compile(wide, target), narrowKernel = compile(narrow, target);
    ASSERT_TRUE(wideKernel && narrowKernel);
    GemmProblem problem(wide);
    std::vector<float> all = problem.run(wideKernel, 0, false);
    problem.spec = narrow;
    std::vector<float> some = problem.run(narrowKernel, 0, false);
    problem.forEach([&](int64_t, int64_t i, int64_t j) {
      int64_t at = elementOffset(wide.c, 0, i, j);
      EXPECT_EQ(all[at], some[at]) << i << ", " << j;
    });
  }
}

TEST(GemmThin, KeepsNansAndInfinitiesWhereTheyBelong) {
  const CpuTarget target = CpuTarget::host();
  for (const GemmSpec &spec : allTransposes(3, 35, 13)) {
    CompiledKernel kernel = compile(spec, target);
    ASSERT_TRUE(kernel);
    GemmProblem problem(spec);
    problem.a[elementOffset(spec.a, 0, 2, 12)] = std::numeric_limits<float>::infinity();
    problem.b[elementOffset(spec.b, 0, 4, 34)] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> c = problem.run(kernel, 0, false);
    problem.forEach([&](int64_t, int64_t i, int64_t j) {
      float value = c[elementOffset(spec.c, 0, i, j)];
      EXPECT_EQ(std::isnan(value), j == 34) << i << ", " << j;
      EXPECT_EQ(std::isfinite(value), j != 34 && i != 2) << i << ", " << j;
    });
  }
}

} // namespace

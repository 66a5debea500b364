// Generated matrix products against double loops: shapes that fill no tile, all transposes,
// batches, gaps between rows, accumulation; on the host's vectors and on narrower ones.
#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/KernelBuilder.h"

#include "tests/numerics/CompiledKernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace {

using namespace gradc::codegen;

const float sentinel = 12345.5f;

std::vector<float> randomNumbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(random() >> 8) * 0x1p-23f - 1;
  return numbers;
}

/// Strides of `rows` x `columns`, stored by rows or by columns, with `gap` elements after each.
GemmSpec::Matrix strides(int64_t rows, int64_t columns, bool transposed, int64_t gap = 0) {
  int64_t line = (transposed ? rows : columns) + gap;
  int64_t batch = line * (transposed ? columns : rows) + gap;
  return {transposed ? 1 : line, transposed ? line : 1, batch};
}

GemmSpec makeSpec(int64_t m, int64_t n, int64_t k, bool aTransposed, bool bTransposed,
                  int64_t gap = 0) {
  GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  spec.a = strides(m, k, aTransposed, gap);
  spec.b = strides(k, n, bTransposed, gap);
  spec.c = strides(m, n, false, gap);
  return spec;
}

int64_t offset(const GemmSpec::Matrix &x, int64_t batch, int64_t row, int64_t column) {
  return batch * x.batchStride + row * x.rowStride + column * x.columnStride;
}
int64_t elements(const GemmSpec::Matrix &x, int64_t batch, int64_t rows, int64_t columns) {
  return offset(x, batch - 1, rows - 1, columns - 1) + 1;
}

std::string describe(const GemmSpec &s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         ", batch " + std::to_string(s.batch) + (s.a.columnStride == 1 ? "" : ", A transposed") +
         (s.b.columnStride == 1 ? "" : ", B transposed") + (s.accumulate ? ", accumulate" : "");
}

/// Inputs that end with their last element, so that a read beyond is one beyond the allocation.
struct Problem {
  explicit Problem(const GemmSpec &s)
      : spec(s), a(randomNumbers(elements(s.a, s.batch, s.m, s.k), 1)),
        b(randomNumbers(elements(s.b, s.batch, s.k, s.n), 2)),
        before(elements(s.c, s.batch, s.m, s.n) + 8, sentinel) {
    std::vector<float> numbers = randomNumbers(s.batch * s.m * s.n, 3);
    forEach([&](int64_t batch, int64_t i, int64_t j) {
      before[offset(s.c, batch, i, j)] = numbers[(batch * s.m + i) * s.n + j];
    });
  }
  template <typename F> void forEach(F f) const {
    for (int64_t batch = 0; batch < spec.batch; ++batch)
      for (int64_t i = 0; i < spec.m; ++i)
        for (int64_t j = 0; j < spec.n; ++j)
          f(batch, i, j);
  }

  /// C, the tasks run forwards or backwards.
  std::vector<float> run(const CompiledKernel &kernel, int64_t extent, bool backwards) {
    std::vector<float> c = before;
    int64_t tasks = gemmTaskCount(spec);
    for (int64_t task = 0; task < tasks; ++task)
      kernel.call({a.data(), b.data(), c.data()}, extent, backwards ? tasks - 1 - task : task);
    return c;
  }

  void expectProduct(const std::vector<float> &c) const {
    std::vector<float> rest = c, restBefore = before;
    int64_t wrong = 0;
    forEach([&](int64_t batch, int64_t i, int64_t j) {
      int64_t at = offset(spec.c, batch, i, j);
      double want = spec.accumulate ? before[at] : 0, size = std::abs(want);
      for (int64_t step = 0; step < spec.k; ++step) {
        double x = a[offset(spec.a, batch, i, step)], y = b[offset(spec.b, batch, step, j)];
        want += x * y;
        size += std::abs(x * y);
      }
      // Far above what rounding does to these sums, far below one wrong term of them.
      bool close = std::abs(c[at] - want) <= 2e-6 * (size + 0.1);
      if (!close && ++wrong <= 3)
        ADD_FAILURE() << "C[" << batch << ", " << i << ", " << j << "] is " << c[at] << ", not "
                      << want;
      rest[at] = restBefore[at] = 0;
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(rest, restBefore) << "written outside of C";
  }

  GemmSpec spec;
  std::vector<float> a, b, before;
};

/// Products in one module, which share their functions; `extent` chooses the product.
void emitAll(mlir::ModuleOp module, llvm::StringRef name, const std::vector<GemmSpec> &specs,
             const CpuTarget &target) {
  std::vector<mlir::func::FuncOp> products;
  for (const GemmSpec &spec : specs)
    products.push_back(emitGemm(module, "product" + std::to_string(products.size()), spec, target));
  KernelBuilder k(module, name, target);
  for (auto [i, product] : llvm::enumerate(products))
    k.ifTrue(
        k.less(k.extent(), k.index(int64_t(i))), [] {},
        [&] {
          k.ifTrue(k.less(k.extent(), k.index(int64_t(i) + 1)), [&] {
            mlir::func::CallOp::create(
                k.builder(), k.location(), product,
                mlir::ValueRange{k.parameter(0), k.parameter(1), k.parameter(2)});
          });
        });
  k.finish();
}

void check(const std::vector<GemmSpec> &specs, const CpuTarget &target) {
  CompiledKernel kernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitAll(module, name, specs, target);
                        });
  ASSERT_TRUE(kernel);
  for (size_t i = 0; i < specs.size(); ++i) {
    const GemmSpec &spec = specs[i];
    SCOPED_TRACE(describe(spec) + ", vectors of " + std::to_string(target.vectorBits) + " bits");
    EXPECT_EQ(verify(spec), "");
    Problem problem(spec);
    std::vector<float> c = problem.run(kernel, i, false), again = problem.run(kernel, i, true);
    problem.expectProduct(c);
    EXPECT_EQ(std::memcmp(c.data(), again.data(), c.size() * sizeof(float)), 0)
        << "the order of the tasks shows";
  }
}

/// The host, narrower vectors, and ones of 512 bits: where the host has none of these, LLVM makes
/// two of each, which is slow but computes what the kernel says.
std::vector<CpuTarget> targets() {
  std::vector<CpuTarget> targets = hostTargets();
  if (targets.front().vectorBits < 512) {
    targets.push_back(targets.front());
    targets.back().vectorBits = 512;
  }
  return targets;
}

/// All of them, written and accumulated, for every target.
void checkAll(const std::vector<GemmSpec> &specs) {
  std::vector<GemmSpec> both;
  for (GemmSpec spec : specs)
    for (bool accumulate : {false, true}) {
      spec.accumulate = accumulate;
      both.push_back(spec);
    }
  for (const CpuTarget &target : targets())
    check(both, target);
}

/// A product with both of its operands stored by rows and by columns.
std::vector<GemmSpec> allTransposes(int64_t m, int64_t n, int64_t k, int64_t gap = 0,
                                    int64_t batch = 1) {
  std::vector<GemmSpec> specs;
  for (int transposes = 0; transposes < 4; ++transposes) {
    specs.push_back(makeSpec(m, n, k, transposes & 1, transposes & 2, gap));
    specs.back().batch = batch;
  }
  return specs;
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
  check({makeSpec(768, 50257, 5, false, true), weights, makeSpec(24, 20, 50257, false, false)},
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

TEST(GemmKernel, KeepsNansAndInfinitiesWhereTheyBelong) {
  const CpuTarget target = CpuTarget::host();
  GemmSpec spec = makeSpec(19, 35, 13, false, false);
  CompiledKernel kernel(target,
                        [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
                          emitGemm(module, name, spec, target);
                        });
  ASSERT_TRUE(kernel);
  Problem problem(spec);
  problem.a[offset(spec.a, 0, 18, 12)] = std::numeric_limits<float>::infinity();
  problem.b[offset(spec.b, 0, 4, 34)] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> c = problem.run(kernel, 0, false);
  problem.forEach([&](int64_t, int64_t i, int64_t j) {
    float value = c[offset(spec.c, 0, i, j)];
    EXPECT_EQ(std::isnan(value), j == 34) << i << ", " << j;
    EXPECT_EQ(std::isfinite(value), j != 34 && i != 18) << i << ", " << j;
  });
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
}

} // namespace

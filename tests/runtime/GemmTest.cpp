// GemmEngine against a double loop, over sizes, layouts, batches and accumulation, and its results
// bit for bit over the number of threads.
#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/GemmTiling.h"
#include "runtime/cpu/GemmWorkspace.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

struct Case {
  const char *name;
  int64_t m, n, k;
  bool aTransposed = false, bTransposed = false, cTransposed = false;
  int64_t batch0 = 1, batch1 = 1;
  bool accumulate = false;
  int64_t padding = 0;    ///< extra elements between rows
  bool shareB = false;    ///< batch stride 0 for the right operand
  bool workspace = false; ///< allow packing
  bool packAlways = false;
  int64_t workspaceLimit = gemmPackLimitBytes;
};

std::ostream &operator<<(std::ostream &out, const Case &c) { return out << c.name; }

/// An operand laid out with the batches outermost.
GradcMatrix layout(int64_t rows, int64_t columns, bool transposed, const Case &c, bool shared,
                   int64_t &elements) {
  GradcMatrix matrix{};
  int64_t leading = (transposed ? rows : columns) + c.padding;
  matrix.rowStride = transposed ? 1 : leading;
  matrix.columnStride = transposed ? leading : 1;
  int64_t size = leading * (transposed ? columns : rows);
  matrix.batchStride[1] = shared ? 0 : size;
  matrix.batchStride[0] = shared ? 0 : size * c.batch1;
  elements = shared ? size : size * c.batch0 * c.batch1;
  return matrix;
}

std::vector<float> randomFloats(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

int64_t at(const GradcMatrix &matrix, int64_t i, int64_t j, int64_t row, int64_t column) {
  return i * matrix.batchStride[0] + j * matrix.batchStride[1] + row * matrix.rowStride +
         column * matrix.columnStride;
}

struct Fixture {
  explicit Fixture(const Case &c) {
    int64_t sizeA, sizeB, sizeC;
    gemm.name = c.name;
    gemm.m = c.m;
    gemm.n = c.n;
    gemm.k = c.k;
    gemm.batch[0] = c.batch0;
    gemm.batch[1] = c.batch1;
    gemm.a = layout(c.m, c.k, c.aTransposed, c, false, sizeA);
    gemm.b = layout(c.k, c.n, c.bTransposed, c, c.shareB, sizeB);
    gemm.c = layout(c.m, c.n, c.cTransposed, c, false, sizeC);
    gemm.accumulate = c.accumulate;
    packing = c.packAlways ? GemmPacking::always : GemmPacking::whereItPays;
    gemm.workspaceBytes =
        c.workspace ? std::min(c.workspaceLimit, gemmWorkspaceBytes(c.m, c.n, c.k)) : 0;
    a = randomFloats(sizeA, 1);
    b = randomFloats(sizeB, 2);
    before = randomFloats(sizeC, 3);
    if (!c.accumulate) // what is only written may hold anything
      for (int64_t i = 0; i < c.batch0; ++i)
        for (int64_t j = 0; j < c.batch1; ++j)
          for (int64_t row = 0; row < c.m; ++row)
            for (int64_t column = 0; column < c.n; ++column)
              before[at(gemm.c, i, j, row, column)] = NAN;
  }

  std::vector<float> run(int threads) {
    auto pool = ThreadPool::create(threads);
    EXPECT_TRUE(pool.ok());
    GemmEngine engine(**pool, packing);
    std::vector<float> c = before;
    std::unique_ptr<std::byte, decltype(&std::free)> workspace(
        static_cast<std::byte *>(std::aligned_alloc(64, gemm.workspaceBytes + 64)), &std::free);
    auto status = engine.run(gemm, a.data(), b.data(), c.data(), workspace.get());
    EXPECT_TRUE(status.ok()) << status.message();
    return c;
  }

  GradcGemm gemm{};
  GemmPacking packing;
  std::vector<float> a, b, before;
};

class GemmTest : public testing::TestWithParam<Case> {};

TEST_P(GemmTest, AgreesWithADoubleLoopOnAnyNumberOfThreads) {
  const Case &c = GetParam();
  Fixture setup(c);
  const GradcGemm &gemm = setup.gemm;
  std::vector<float> result = setup.run(2);
  std::vector<char> written(result.size());
  double worst = 0;
  for (int64_t i = 0; i < c.batch0; ++i)
    for (int64_t j = 0; j < c.batch1; ++j)
      for (int64_t row = 0; row < c.m; ++row)
        for (int64_t column = 0; column < c.n; ++column) {
          int64_t place = at(gemm.c, i, j, row, column);
          double sum = c.accumulate ? setup.before[place] : 0;
          double magnitude = 1;
          for (int64_t k = 0; k < c.k; ++k) {
            double term = double(setup.a[at(gemm.a, i, j, row, k)]) *
                          double(setup.b[at(gemm.b, i, j, k, column)]);
            sum += term;
            magnitude += std::abs(term);
          }
          double error = std::abs(result[place] - sum) / magnitude;
          if (!(error <= worst)) // also true for a NaN
            worst = error;
          written[place] = 1;
        }
  EXPECT_LE(worst, 2e-6);
  for (std::size_t place = 0; place < result.size(); ++place)
    if (!written[place])
      ASSERT_EQ(std::memcmp(&result[place], &setup.before[place], sizeof(float)), 0)
          << "an element between the rows was touched at " << place;
  for (int threads : {1, 3}) {
    std::vector<float> other = setup.run(threads);
    EXPECT_EQ(std::memcmp(result.data(), other.data(), result.size() * sizeof(float)), 0)
        << "other bits with " << threads << " threads";
  }
}

const Case cases[] = {
    {"one", 1, 1, 1},
    {"row", 1, 300, 70},
    {"column", 300, 1, 70},
    {"row_transposed_b", 1, 301, 77, false, true},
    {"outer", 65, 33, 1},
    {"odd", 129, 67, 45},
    {"odd_ta", 129, 67, 45, true},
    {"odd_tb", 129, 67, 45, false, true},
    {"odd_ta_tb", 129, 67, 45, true, true},
    {"odd_tc", 129, 67, 45, false, false, true},
    {"odd_ta_tb_tc", 129, 67, 45, true, true, true},
    {"padded", 100, 200, 50, false, false, false, 1, 1, false, 5},
    {"padded_ta_accumulate", 100, 200, 50, true, false, false, 1, 1, true, 3},
    {"accumulate", 300, 200, 100, false, false, false, 1, 1, true},
    {"accumulate_tc", 300, 200, 100, false, true, true, 1, 1, true},
    {"wide", 64, 3001, 96, false, true},
    {"tall", 3001, 64, 96, true},
    {"long_sum", 64, 48, 5000},
    {"batch_heads", 70, 70, 16, false, true, false, 2, 3},
    {"batch_pv", 128, 64, 128, false, false, false, 4, 12},
    {"batch_dv", 128, 64, 128, true, false, false, 4, 12, true},
    {"batch_few", 256, 300, 64, false, true, false, 1, 2},
    {"batch_many_tiny", 8, 8, 4, false, false, false, 50, 7},
    {"batch_shared", 70, 90, 33, false, false, false, 3, 2, false, 0, true},
    {"packed", 520, 700, 300, false, false, false, 1, 1, false, 0, false, true},
    {"packed_tb", 520, 700, 300, false, true, false, 1, 1, true, 0, false, true},
    {"packed_always", 512, 300, 257, false, false, false, 1, 1, false, 0, false, true, true},
    {"packed_always_tb", 513, 301, 256, true, true, false, 1, 1, true, 7, false, true, true},
    {"packed_always_panels", 512, 300, 256, false, true, false, 1, 1, false, 0, false, true, true,
     140 << 10},
    {"packed_panels", 512, 300, 14100, false, true, false, 1, 1, false, 0, false, true},
};

INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest, testing::ValuesIn(cases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(GemmEngine, ReusesAPlanForOtherAddresses) {
  Case c{"reuse", 40, 50, 60};
  Fixture first(c), second(c);
  second.a = randomFloats(int64_t(second.a.size()), 9);
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  GemmEngine engine(**pool);
  std::vector<float> c1 = first.before, c2 = second.before;
  ASSERT_TRUE(engine.run(first.gemm, first.a.data(), first.b.data(), c1.data(), nullptr).ok());
  ASSERT_TRUE(engine.run(second.gemm, second.a.data(), second.b.data(), c2.data(), nullptr).ok());
  EXPECT_EQ(c1, first.run(1));
  EXPECT_EQ(c2, second.run(1));
}

TEST(GemmEngine, NamesADescriptorThatCannotBeExecuted) {
  Case c{"bad_strides", 40, 50, 60};
  Fixture setup(c);
  setup.gemm.a.rowStride = 2 * 60;
  setup.gemm.a.columnStride = 2;
  auto pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.ok());
  GemmEngine engine(**pool);
  auto status =
      engine.run(setup.gemm, setup.a.data(), setup.b.data(), setup.before.data(), nullptr);
  EXPECT_EQ(status.code(), ExitCode::defect);
  EXPECT_NE(status.message().find("bad_strides"), std::string::npos) << status.message();
}

TEST(GemmEngine, RefusesResultsThatOverlap) {
  Case c{"overlap", 40, 50, 60, false, false, false, 2};
  Fixture setup(c);
  setup.gemm.c.batchStride[0] = 0;
  auto pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.ok());
  GemmEngine engine(**pool);
  auto status =
      engine.run(setup.gemm, setup.a.data(), setup.b.data(), setup.before.data(), nullptr);
  EXPECT_EQ(status.code(), ExitCode::defect);
}

TEST(GemmTiling, CoversTheProductAndRespectsTheWorkspace) {
  for (int64_t m : {1, 500, 1024, 5000})
    for (int64_t n : {1, 768, 3072, 50257})
      for (int64_t k : {64, 768, 3072, 50257}) {
        GradcGemm gemm{};
        gemm.m = m, gemm.n = n, gemm.k = k;
        gemm.batch[0] = gemm.batch[1] = 1;
        gemm.a.rowStride = k, gemm.a.columnStride = 1;
        gemm.b.rowStride = n, gemm.b.columnStride = 1;
        gemm.c.rowStride = n, gemm.c.columnStride = 1;
        GemmProblem problem = normalise(gemm);
        GemmTiling plain = tile(problem);
        EXPECT_GE(plain.sliceColumns * plain.columnSlices, problem.n);
        EXPECT_LT(plain.sliceColumns * (plain.columnSlices - 1), problem.n);
        EXPECT_GE(plain.sliceRows * plain.rowSlices, problem.m);
        EXPECT_LT(plain.sliceRows * (plain.rowSlices - 1), problem.m);
        GemmTiling packed;
        int64_t workspace = gemmWorkspaceBytes(m, n, k);
        ASSERT_EQ(tilePacked(problem, workspace, packed), workspace > 0);
        if (workspace == 0)
          continue;
        EXPECT_LE(workspace, gemmPackLimitBytes);
        EXPECT_GE(packed.sliceColumns * packed.columnSlices, problem.n);
        EXPECT_LT(packed.sliceColumns * (packed.columnSlices - 1), problem.n);
        EXPECT_GE(packed.panelSlices, 1);
        EXPECT_LE(packed.panelSlices * packed.sliceColumns * k * 4, workspace);
      }
}

} // namespace
} // namespace gradc::rt

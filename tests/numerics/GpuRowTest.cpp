// Row programs as GPU kernels, beyond what every row program's check against
// its reference does (RowHarness.h): shapes that make each kind of schedule,
// memory shared, orders, the CPU's bits.
#include "tests/numerics/Elements.h"
#include "tests/numerics/GpuRowKernel.h"
#include "tests/numerics/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace gradc::row;
using gradc::codegen::gpu::RowSchedule;

namespace {

/// On the target that GpuRowKernel takes unless told otherwise.
RowSchedule scheduleRows(const Program &program,
                         const gradc::codegen::gpu::Alignments &alignments = {}) {
  return gradc::codegen::gpu::scheduleRows(program, {80}, alignments);
}

constexpr double specialNumbers[] = {0.0,       -0.0,  INFINITY, -INFINITY,     NAN, 0x1p-140,
                                     -0x1p-149, 1.0,   -1.0,     448,           464, 465,
                                     57344,     61440, 0x1p-126, 0x1.fffffep127};

/// Three loops that read one matrix.
Program logSoftmax(int64_t columns, Dtype dtype) {
  Builder b(columns);
  int32_t in = b.matrix(dtype), out = b.matrix(dtype);
  NodeId x = b.load(in), max = b.reduceMax(x);
  NodeId sum = b.reduceSum(b.exp(b.sub(x, max)));
  b.store(out, b.sub(b.sub(x, max), b.log(sum)));
  return b.take();
}

TEST(GpuRow, SchedulesFollowTheRows) {
  // One warp a row while a row fits its registers, more for longer ones, none
  // held beyond 16.
  RowSchedule norm = scheduleRows(samples::residualLayerNorm(768, Dtype::bf16));
  EXPECT_EQ(norm.lanes, 8);
  EXPECT_EQ(norm.warps, 1);
  EXPECT_TRUE(norm.held);
  EXPECT_EQ(norm.vectors, 3);
  EXPECT_GT(scheduleRows(samples::residualLayerNorm(4096)).warps, 1);
  // Longer rows are kept in shared memory, or as many of their columns as fit.
  RowSchedule logits = scheduleRows(samples::crossEntropy(32000, 1, Dtype::bf16));
  EXPECT_FALSE(logits.held);
  EXPECT_FALSE(logits.kept.empty());
  EXPECT_EQ(logits.keptColumns, 32000);
  EXPECT_GE(logits.keptBytes, 2 * 32000);
  RowSchedule wide = scheduleRows(samples::crossEntropy(50257, 1));
  EXPECT_FALSE(wide.held);
  EXPECT_EQ(wide.kept.size(), 2u);
  EXPECT_EQ(wide.keptColumns % wide.step(), 0);
  EXPECT_GT(wide.keptBytes, 150 * 1024);
  EXPECT_LE(wide.keptBytes, 162 * 1024);
  // What is read again is still in a second-level cache, or is not.
  EXPECT_TRUE(scheduleRows(logSoftmax(50257, Dtype::f32)).restIsCached);
  EXPECT_TRUE(scheduleRows(logSoftmax(128256, Dtype::bf16)).restIsCached);
  EXPECT_FALSE(scheduleRows(logSoftmax(128256, Dtype::f32)).restIsCached);
  // Vectors divide rows: none is cut.
  EXPECT_EQ(scheduleRows(samples::residualLayerNorm(97)).lanes, 1);
  EXPECT_EQ(scheduleRows(samples::residualLayerNorm(770)).lanes, 2);
  // Nor does one reach beyond what its buffer is aligned to; what is not of columns does not
  // matter.
  Program swiGlu = samples::swiGlu(Dtype::bf16);
  for (int64_t bytes : {16, 8, 4, 2}) {
    std::vector<int64_t> alignments(swiGlu.buffers.size(), 16);
    alignments.back() = bytes;
    EXPECT_EQ(scheduleRows(swiGlu, alignments).lanes, bytes / 2);
  }
  EXPECT_EQ(scheduleRows(samples::crossEntropy(32000, 1), {16, 4, 4, 16}).lanes, 4);
  // Without reductions rows are cut; sums over rows keep the graph's number of
  // partial sums.
  EXPECT_EQ(scheduleRows(samples::biasGeluTanh(3072)).slices, 6);
  RowSchedule backward = scheduleRows(samples::biasGeluTanhBackward(3072));
  EXPECT_EQ(backward.rows, rowsPerTask);
  EXPECT_EQ(taskCount(samples::biasGeluTanhBackward(3072), backward, 65), 2 * backward.slices);
  EXPECT_EQ(scheduleRows(samples::swiGlu(Dtype::bf16)).lanes, 8);
}

/// Sums of `columns` terms are good to a few units of f32 each, then rounded to
/// the buffer's type; a sum that is rounded the other way moves what follows by
/// one of its units.
Bound boundOf(const Program &program, size_t buffer) {
  double unit = 2 * unitRoundoff(program.buffers[buffer].dtype);
  for (const Buffer &other : program.buffers)
    unit = std::max(unit, other.kind == BufferKind::matrix ? 2 * unitRoundoff(other.dtype) : 0);
  return {1e-5 + 4 * unit, 1e-5 + 4 * unit};
}

void check(const Program &program, int64_t extent, const std::vector<Array> &arrays) {
  GpuRowKernel kernel(program);
  ASSERT_TRUE(kernel);
  std::vector<Array> want = arrays;
  evaluate(program, extent, want);
  std::vector<Array> got = kernel.run(extent, arrays);
  for (size_t i = 0; i < got.size(); ++i)
    expectClose(got[i], want[i], boundOf(program, i),
                std::to_string(program.columns) + " columns, buffer " + std::to_string(i));
}

TEST(GpuRow, RowsOfEveryLength) {
  // Held by 1 to 16 warps, and streamed, with and without a rest of a step.
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (int64_t columns : {640, 1600, 4096, 5000, 9216, 20002})
      for (const Program &program :
           {samples::residualLayerNorm(columns, dtype), samples::layerNormBackward(columns, dtype)})
        check(program, 70, randomArrays(program, 70, 3, 0, 2));
}

/// With gaps between rows, which then begin at vectors.
Program padded(Program program) {
  for (Buffer &buffer : program.buffers)
    if (buffer.kind == BufferKind::matrix)
      buffer.rowStride = (program.columns + 7) / 8 * 8;
  return program;
}

/// Rows of logits whose labels are all over them, the first and the last column included; one has
/// none.
std::vector<Array> logits(const Program &program) {
  std::vector<Array> arrays = randomArrays(program, 5, 3, -8, 8);
  const auto last = static_cast<double>(program.columns - 1);
  arrays[1] = {0, std::floor(last / 2), last - 1, -100, last};
  return arrays;
}

TEST(GpuRow, LongRowsOfLogits) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (int64_t columns : {4096, 20003, 50257}) { // held, kept, kept in part where of f32
      Program program = padded(samples::crossEntropy(columns, 1, dtype));
      EXPECT_EQ(scheduleRows(program).lanes, dtype == Dtype::f32 ? 4 : 8);
      check(program, 5, logits(program));
    }
  Program odd = samples::crossEntropy(20003, 1), longest = samples::crossEntropy(128256, 1);
  EXPECT_EQ(scheduleRows(odd).lanes, 1);
  for (const Program &program : {odd, longest})
    check(program, 5, logits(program));
  // Read again from the cache.
  Program softmax = logSoftmax(50257, Dtype::f32);
  check(softmax, 3, randomArrays(softmax, 3, 6, -8, 8));
}

TEST(GpuRow, SlicesOfRows) {
  for (Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (int64_t columns : {5, 256, 1000, 3072})
      for (const Program &program :
           {samples::biasGeluTanh(columns, dtype), samples::biasGeluTanhBackward(columns, dtype)})
        check(program, 130, randomArrays(program, 130, 4));
  // Slices of which the last has elements behind its vectors, or nothing else.
  for (int64_t columns : {1027, 2049}) {
    Program program = padded(samples::biasGeluTanh(columns, Dtype::bf16));
    EXPECT_EQ(scheduleRows(program).lanes, 8);
    check(program, 13, randomArrays(program, 13, 4));
  }
}

TEST(GpuRow, NarrowViewsOfWideMatrices) {
  Builder b(48);
  int32_t in = b.matrix(Dtype::bf16, /*rowStride=*/144), out = b.matrix(Dtype::bf16, 52);
  NodeId x = b.load(in);
  b.store(out, b.mul(x, b.reduceMax(x)));
  Program program = b.take();
  EXPECT_EQ(scheduleRows(program).lanes, 4); // 52 is no multiple of 8
  check(program, 67, randomArrays(program, 67, 5));
}

TEST(GpuRow, Float8) {
  Builder b = Builder::flat();
  int32_t in = b.matrix(Dtype::bf16), e4m3 = b.matrix(Dtype::f8e4m3),
          e5m2 = b.matrix(Dtype::f8e5m2);
  NodeId x = b.load(in);
  b.store(e4m3, x);
  b.store(e5m2, x);
  Program program = b.take();
  std::vector<Array> arrays = randomArrays(program, 9001, 6, -600, 600);
  GpuRowKernel kernel(program);
  ASSERT_TRUE(kernel);
  std::vector<Array> want = arrays, got = kernel.run(9001, arrays);
  evaluate(program, 9001, want);
  for (size_t i = 0; i < got.size(); ++i)
    expectSame(got[i], want[i], "buffer " + std::to_string(i));
}

TEST(GpuRow, NumbersThatAWarpSharesEqualPhilox) {
  // Vectors of 8 (RowProgramTest has those of 4): rows in slices, rows below a warp's, and flat.
  for (int64_t columns : {0, 64, 512, 1024}) {
    Builder b = columns == 0 ? Builder::flat() : Builder(columns);
    int32_t in = b.matrix(Dtype::bf16), seed = b.scalar(Dtype::i32), step = b.scalar(Dtype::i32);
    int32_t firstRow = b.scalar(Dtype::i32), out = b.matrix(Dtype::bf16);
    NodeId number = b.uniform(b.load(seed), b.load(step), b.load(firstRow), /*stream=*/3);
    b.store(out, b.select(b.lessThan(number, b.constant(0.25)), b.load(in), b.constant(0)));
    Program program = b.take();
    int64_t extent = columns == 0 ? 20011 : 19;
    std::vector<Array> arrays = randomArrays(program, extent, 8);
    arrays[1] = {-1234567};
    arrays[2] = {42};
    arrays[3] = {1 << 28}; // with which an index of 32 bits would overflow
    GpuRowKernel kernel(program);
    ASSERT_TRUE(kernel);
    std::vector<Array> want = arrays;
    evaluate(program, extent, want);
    expectSame(kernel.run(extent, arrays)[4], want[4], std::to_string(columns) + " columns");
  }
}

/// Every pair that mayAlias allows, one at a time, gives the bits of distinct
/// memory.
TEST(GpuRow, InPlaceEqualsOutOfPlace) {
  for (int64_t columns : {5, 768, 9216})
    for (const Program &program :
         {samples::residualLayerNorm(columns, Dtype::bf16), samples::layerNormBackward(columns),
          samples::biasGeluTanhBackward(columns), samples::causalSoftmax(columns, 1),
          samples::crossEntropy(columns, 1)}) {
      std::vector<Array> arrays = randomArrays(program, 67, 8, 0, 1);
      GpuRowKernel kernel(program);
      ASSERT_TRUE(kernel);
      std::vector<Array> apart = kernel.run(67, arrays);
      int pairs = 0;
      for (int32_t input = 0; input < static_cast<int32_t>(apart.size()); ++input)
        for (const Effect &effect : program.effects)
          if (effect.kind == EffectKind::store && input != effect.buffer &&
              mayAlias(program, input, effect.buffer)) {
            ++pairs;
            std::vector<Array> together = kernel.run(67, arrays, {{input, effect.buffer}});
            for (int32_t i = 0; i < static_cast<int32_t>(apart.size()); ++i)
              if (i != input)
                expectSame(together[i], apart[i], "buffer " + std::to_string(i));
          }
      EXPECT_GE(pairs, 1);
    }
}

TEST(GpuRow, SameBitsInAnyOrderOfWarps) {
  for (const Program &program :
       {samples::layerNormBackward(768), samples::layerNormBackward(1600, Dtype::bf16),
        samples::crossEntropy(5003, 1), samples::biasGeluTanhBackward(96)}) {
    std::vector<Array> arrays = randomArrays(program, 133, 4, 0, 1);
    GpuRowKernel kernel(program);
    ASSERT_TRUE(kernel);
    std::vector<Array> up = kernel.run(133, arrays, {}, gradc::rt::WarpOrder::ascending);
    std::vector<Array> down = kernel.run(133, arrays, {}, gradc::rt::WarpOrder::descending);
    for (size_t i = 0; i < up.size(); ++i)
      expectSame(down[i], up[i], "buffer " + std::to_string(i));
  }
}

TEST(GpuRow, FunctionsHaveTheBitsOfTheCpu) {
  gradc::codegen::CpuTarget host = gradc::codegen::CpuTarget::host();
  if (host.vectorBits < 256)
    GTEST_SKIP() << "no fused multiply-adds on this machine";
  for (NodeKind kind : {NodeKind::exp, NodeKind::log, NodeKind::sqrt, NodeKind::rsqrt,
                        NodeKind::tanh, NodeKind::erf, NodeKind::roundBf16, NodeKind::roundF16,
                        NodeKind::roundF8E4M3, NodeKind::roundF8E5M2, NodeKind::exponentPart}) {
    Builder b = Builder::flat();
    int32_t in = b.matrix(), out = b.matrix();
    Program program = b.take();
    NodeId x = program.addNode({NodeKind::load, {noNode, noNode, noNode}, 0, in});
    NodeId y = program.addNode({kind, {x, noNode, noNode}, 0, -1});
    program.effects.push_back({EffectKind::store, out, y});
    const int64_t count = 10007;
    std::vector<Array> arrays = randomArrays(program, count, 7, -90, 90);
    for (size_t i = 0; i < std::size(specialNumbers); ++i)
      arrays[0][i * 5] = specialNumbers[i];
    GpuRowKernel gpu(program);
    RowKernel cpu(program, host);
    ASSERT_TRUE(gpu && cpu);
    expectSame(gpu.run(count, arrays)[1], cpu.run(count, arrays)[1], name(kind));
  }
}

} // namespace

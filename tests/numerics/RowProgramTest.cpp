// Compiled row programs against their f64 reference: what a transformer's step is made of, at sizes
// that leave ragged rows, columns and tasks.
#include "tests/numerics/RowHarness.h"
#include "tests/numerics/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace gradc::row;

namespace {

/// Ragged column counts: below a vector, around one, around a step, many steps and a rest.
const int64_t columnCounts[] = {1, 7, 32, 97, 100, 768};
/// Ragged row counts: below a task, one task and a bit, two tasks.
const int64_t extents[] = {5, 65, 128};

/// f32 sums of a few hundred terms.
constexpr Bound f32Bound{2e-6, 2e-6};

/// Calls `check` with each combination of sizes, the large ones only once.
template <typename Check> void forEachSize(Check check) {
  for (int64_t columns : columnCounts)
    for (int64_t extent : extents)
      if (columns < 768 || extent == 65)
        check(columns, extent);
}

TEST(RowProgram, ResidualLayerNorm) {
  forEachSize([](int64_t columns, int64_t extent) {
    // One column has no variance: its result is a difference of equal numbers times 300.
    Bound bound = columns == 1 ? Bound{2e-6, 1e-4} : f32Bound;
    Program program = samples::residualLayerNorm(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns), bound);
  });
}

TEST(RowProgram, LayerNormBackward) {
  forEachSize([](int64_t columns, int64_t extent) {
    Program program = samples::layerNormBackward(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns), {4e-6, 1e-5});
  });
}

TEST(RowProgram, NarrowTypes) {
  for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    for (const Program &program :
         {samples::residualLayerNorm(100, dtype), samples::layerNormBackward(97, dtype),
          samples::biasGeluTanh(100, dtype), samples::crossEntropy(77, 1, dtype)}) {
      std::vector<Array> arrays = randomArrays(program, 70, 1);
      // A sum rounded the other way moves what follows by a unit of the narrow type.
      double unit = dtype == Dtype::bf16 ? 0x1p-8 : 0x1p-11;
      checkAgainstReference(program, 70, arrays, {8 * unit, 8 * unit});
    }
  }
}

TEST(RowProgram, CausalSoftmax) {
  forEachSize([](int64_t columns, int64_t extent) {
    Program program = samples::causalSoftmax(columns, 0.125);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns, -80, 80),
                          {2e-6, 1e-30});
  });
}

TEST(RowProgram, GeluTanh) {
  forEachSize([](int64_t columns, int64_t extent) {
    // Relative to the result, also where it is tiny: exp's argument, near 10, is good to 1e-6.
    Program program = samples::biasGeluTanh(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns), {2e-6, 1e-37});
    checkAgainstReference(program, extent, randomArrays(program, extent, columns, -4, 4),
                          {1e-6, 1e-6});
    // The partial sums add 64 terms of up to 10.
    program = samples::biasGeluTanhBackward(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns, -4, 4),
                          {2e-6, 4e-5});
  });
}

TEST(RowProgram, GeluErf) {
  forEachSize([](int64_t columns, int64_t extent) {
    Program program = samples::biasGeluErf(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns, -4, 4),
                          {1e-6, 1e-6});
    program = samples::biasGeluErfBackward(columns);
    checkAgainstReference(program, extent, randomArrays(program, extent, columns, -4, 4),
                          {2e-6, 4e-5});
  });
}

std::vector<Array> crossEntropyArrays(const Program &program, int64_t extent, int64_t columns) {
  std::vector<Array> arrays = randomArrays(program, extent, columns, -30, 30);
  for (int64_t row = 0; row < extent; ++row) // every seventh label does not count
    arrays[1][row] = row % 7 == 3 ? -100 : static_cast<double>(row * 37 % columns);
  return arrays;
}

TEST(RowProgram, CrossEntropy) {
  forEachSize([](int64_t columns, int64_t extent) {
    Program program = samples::crossEntropy(columns, 0.25);
    checkAgainstReference(program, extent, crossEntropyArrays(program, extent, columns), f32Bound);
  });
  Program program = samples::crossEntropy(50257, 1);
  checkAgainstReference(program, 3, crossEntropyArrays(program, 3, 50257), f32Bound);
}

TEST(RowProgram, Flat) {
  for (int64_t extent : {1, 31, 32, 100, 16384, 16385, 40000}) {
    Program program = samples::swiGlu();
    checkAgainstReference(program, extent, randomArrays(program, extent, extent, -20, 20),
                          {2e-6, 1e-7});
    program = samples::adamw(/*copy=*/true);
    std::vector<Array> arrays = randomArrays(program, extent, extent, -1, 1);
    for (double &value : arrays[3])
      value = std::fabs(value); // a mean of squares
    arrays[5] = {1e-3};
    arrays[6] = arrays[7] = {1.5};
    checkAgainstReference(program, extent, arrays, {2e-6, 1e-6});
  }
}

TEST(RowProgram, RowStride) {
  // Columns 3 to 8 of a matrix of ten, scaled in place by a row's sum; the others stay as they are.
  Builder b(6);
  int32_t matrix = b.matrix(Dtype::f32, /*rowStride=*/10), out = b.matrix(Dtype::f32, 8);
  NodeId x = b.load(matrix);
  b.store(out, b.mul(x, b.reduceSum(x)));
  Program program = b.take();
  checkAgainstReference(program, 67, randomArrays(program, 67, 5), f32Bound);
}

TEST(RowProgram, IntegersAndConditions) {
  Builder b(45);
  int32_t in = b.matrix(Dtype::i32), out = b.matrix(Dtype::i32), count = b.row(Dtype::i32);
  NodeId x = b.load(in), column = b.columnIndex(), row = b.rowIndex();
  NodeId mixed = b.addInt(b.mulInt(x, b.constant(3)), b.remainderInt(column, b.constant(7)));
  NodeId inside = b.logicalAnd(b.lessThan(column, row), b.lessThan(b.constant(0), x));
  b.store(out, b.select(inside, mixed, b.remainderInt(column, b.addInt(row, b.constant(1)))));
  b.storeRow(count, b.mulInt(row, row));
  Program program = b.take();
  checkAgainstReference(program, 70, randomArrays(program, 70, 3, -1000, 1000), {0, 0});
}

TEST(RowProgram, ValuesOfRowsAndScalarsReachColumns) {
  Builder b(33);
  int32_t scalar = b.scalar(), rows = b.row(), out = b.matrix(), sums = b.columnPartial();
  int32_t negated = b.row();
  NodeId value = b.add(b.load(scalar), b.mul(b.load(rows), b.constant(2)));
  b.store(out, value);
  b.accumulateColumn(sums, b.load(rows));
  b.storeRow(negated, b.neg(value));
  Program program = b.take();
  checkAgainstReference(program, 130, randomArrays(program, 130, 3), f32Bound);
}

TEST(RowProgram, SpecialNumbers) {
  constexpr double inf = INFINITY, nan = NAN;
  for (int64_t columns : {4, 40, 100}) {
    Builder b(columns);
    int32_t in = b.matrix(), out = b.matrix(), max = b.row(), sum = b.row();
    NodeId x = b.load(in);
    b.storeRow(max, b.reduceMax(x));
    b.storeRow(sum, b.reduceSum(x));
    b.store(out, b.maximum(b.minimum(x, b.constant(3)), b.constant(-3)));
    Program program = b.take();
    std::vector<Array> arrays = randomArrays(program, 6, 9);
    auto at = [&](int64_t row, int64_t column) -> double & {
      return arrays[0][row * columns + column];
    };
    at(1, columns - 1) = nan;
    at(2, 0) = inf;
    at(3, columns / 2) = -inf;
    for (int64_t column = 0; column < columns; ++column)
      at(4, column) = -inf; // a row whose maximum is -inf
    at(5, 0) = inf;
    at(5, columns - 1) = -inf; // their sum is NaN
    checkAgainstReference(program, 6, arrays, f32Bound);
  }
}

TEST(RowProgram, NanInALogitIsSeenInLossAndGradient) {
  Program program = samples::crossEntropy(100, 1);
  std::vector<Array> arrays = crossEntropyArrays(program, 4, 100);
  arrays[0][2 * 100 + 50] = NAN;
  arrays[0][1 * 100 + 5] = INFINITY;
  arrays[0][0 * 100 + 7] = -INFINITY;
  checkAgainstReference(program, 4, arrays, f32Bound);
}

TEST(RowProgram, SameBitsInAnyOrderOfTasks) {
  for (const Program &program : {samples::layerNormBackward(100), samples::crossEntropy(77, 1),
                                 samples::biasGeluTanhBackward(96), samples::adamw(true)}) {
    int64_t extent = program.flat ? 100000 : 333;
    std::vector<Array> arrays = randomArrays(program, extent, 4, 0, 1);
    RowKernel kernel(program, gradc::codegen::CpuTarget::host());
    ASSERT_TRUE(kernel);
    std::vector<int64_t> order(taskCount(program, extent));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = static_cast<int64_t>(order.size() - 1 - i);
    std::swap(order[0], order[order.size() / 2]);
    std::vector<Array> forward = kernel.run(extent, arrays);
    std::vector<Array> shuffled = kernel.run(extent, arrays, order);
    for (size_t i = 0; i < forward.size(); ++i)
      expectSame(shuffled[i], forward[i], "buffer " + std::to_string(i));
  }
}

/// Every pair that mayAlias allows, one at a time, gives the bits of distinct memory.
void checkInPlace(const Program &program, int64_t extent, const std::vector<Array> &arrays,
                  int atLeast) {
  RowKernel kernel(program, gradc::codegen::CpuTarget::host());
  ASSERT_TRUE(kernel);
  std::vector<Array> apart = kernel.run(extent, arrays);
  int pairs = 0;
  for (size_t input = 0; input < program.buffers.size(); ++input)
    for (const Effect &effect : program.effects) {
      int output = effect.buffer;
      if (effect.kind != EffectKind::store || static_cast<int>(input) == output ||
          !mayAlias(program, static_cast<int32_t>(input), output))
        continue;
      ++pairs;
      std::vector<Array> together =
          kernel.run(extent, arrays, {}, {{static_cast<int>(input), output}});
      for (size_t i = 0; i < apart.size(); ++i)
        if (i != input)
          expectSame(together[i], apart[i],
                     std::to_string(input) + " in " + std::to_string(output) + ", buffer " +
                         std::to_string(i));
    }
  EXPECT_GE(pairs, atLeast);
}

TEST(RowProgram, InPlaceEqualsOutOfPlace) {
  for (int64_t columns : {5, 100, 768})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const Program &program :
           {samples::residualLayerNorm(columns, dtype), samples::layerNormBackward(columns, dtype),
            samples::biasGeluTanhBackward(columns, dtype),
            samples::causalSoftmax(columns, 1, dtype), samples::crossEntropy(columns, 1, dtype)})
        checkInPlace(program, 67, randomArrays(program, 67, 8, 0, 1), 1);
  Program program = samples::swiGlu();
  checkInPlace(program, 20000, randomArrays(program, 20000, 8), 2);
}

TEST(RowProgram, DropoutEqualsPhilox) {
  // Aligned rows (groups of numbers made together), ragged ones (one by one), and flat.
  for (int64_t columns : {0, 64, 96, 100, 33}) {
    Program program = samples::dropout(columns, 0.3);
    int64_t extent = columns == 0 ? 20011 : 131;
    std::vector<Array> arrays = randomArrays(program, extent, 8);
    arrays[1] = {-1234567};
    arrays[2] = {42};
    arrays[3] = {1 << 28}; // with which an index of 32 bits would overflow
    checkAgainstReference(program, extent, arrays, {1e-6, 0});
  }
}

TEST(RowProgram, UniformNumbersAreUniform) {
  Builder b = Builder::flat();
  int32_t seed = b.scalar(Dtype::i32), step = b.scalar(Dtype::i32), out = b.matrix();
  b.store(out, b.uniform(b.load(seed), b.load(step), b.constant(0), 3));
  Program program = b.take();
  RowKernel kernel(program, gradc::codegen::CpuTarget::host());
  ASSERT_TRUE(kernel);
  const int64_t count = 1 << 16;
  Array numbers = kernel.run(count, {{1}, {2}, Array(count, 0.0)})[2];
  std::vector<int> histogram(16);
  for (double number : numbers) {
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    ++histogram[static_cast<int>(number * 16)];
  }
  for (int bin : histogram) // 4096 expected, standard deviation 62
    EXPECT_NEAR(bin, 4096, 310);
  Array other = kernel.run(count, {{1}, {3}, Array(count, 0.0)})[2];
  EXPECT_NE(numbers, other);
}

} // namespace

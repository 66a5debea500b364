// Elementary functions of compiled kernels over dense sweeps, in units in the last place.
#include "tests/numerics/RowHarness.h"
#include "tests/numerics/SamplePrograms.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gradc::row;

namespace {

Program unary(NodeKind kind) {
  Builder b = Builder::flat();
  int32_t in = b.matrix(), out = b.matrix();
  Program program = b.take();
  NodeId x = program.addNode({NodeKind::load, {noNode, noNode, noNode}, 0, in});
  NodeId y = program.addNode({kind, {x, noNode, noNode}, 0, -1});
  program.effects.push_back({EffectKind::store, out, y});
  return program;
}

/// Distance between f32 numbers at `value`, of normal numbers at least.
double unitAt(double value) {
  int exponent = std::max(std::ilogb(std::fabs(value)), -126);
  return std::ldexp(1.0, exponent - 23);
}

/// Compares a function with f64 over `count` steps of [low, high] and at 0, and its symmetric
/// points.
void checkUnits(NodeKind kind, double low, double high, double units) {
  const int64_t count = 400001;
  Array x(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = roundTo(Dtype::f32, low + (high - low) * static_cast<double>(i) / (count - 1));
  Program program = unary(kind);
  std::vector<Array> want{x, Array(count, 0.0)};
  evaluate(program, count, want);
  for (const gradc::codegen::CpuTarget &target : gradc::codegen::hostTargets()) {
    RowKernel kernel(program, target);
    ASSERT_TRUE(kernel);
    Array got = kernel.run(count, {x, Array(count, 0.0)})[1];
    double worst = 0, where = 0;
    for (int64_t i = 0; i < count; ++i) {
      double distance = std::fabs(got[i] - want[1][i]);
      double error = distance == 0 ? 0 : distance / unitAt(want[1][i]);
      if (!(error <= worst)) {
        worst = error;
        where = x[i];
      }
    }
    EXPECT_LE(worst, units) << name(kind) << " at " << where << ", " << target.vectorBits
                            << " bits";
  }
}

TEST(VectorMath, Exp) {
  checkUnits(NodeKind::exp, -86.9, 88.72, 1.3);
  checkUnits(NodeKind::exp, -1e-3, 1e-3, 1.3);
}

TEST(VectorMath, Log) {
  checkUnits(NodeKind::log, 1e-6, 4, 1.1);
  checkUnits(NodeKind::log, 0.99, 1.01, 1.1);
  checkUnits(NodeKind::log, 1, 3e38, 1.1);
  checkUnits(NodeKind::log, 1e-45, 1e-37, 1.1);
}

TEST(VectorMath, Tanh) {
  checkUnits(NodeKind::tanh, -10, 10, 4.6);
  checkUnits(NodeKind::tanh, -1e-3, 1e-3, 3);
}

TEST(VectorMath, Erf) {
  checkUnits(NodeKind::erf, -5, 5, 5.5);
  checkUnits(NodeKind::erf, -1e-3, 1e-3, 3);
}

TEST(VectorMath, Roots) {
  checkUnits(NodeKind::sqrt, 0, 1e10, 0.51);
  checkUnits(NodeKind::rsqrt, 1e-10, 100, 1.5);
}

TEST(VectorMath, SpecialNumbers) {
  constexpr double inf = INFINITY, nan = NAN;
  struct Case {
    NodeKind kind;
    double x, want;
  };
  const Case cases[] = {
      {NodeKind::exp, -inf, 0},    {NodeKind::exp, inf, inf},   {NodeKind::exp, nan, nan},
      {NodeKind::exp, 0, 1},       {NodeKind::exp, -1000, 0},   {NodeKind::exp, 89, inf},
      {NodeKind::exp, 1e30, inf},  {NodeKind::exp, -87.5, 0},   {NodeKind::log, 0, -inf},
      {NodeKind::log, -0.0, -inf}, {NodeKind::log, -1, nan},    {NodeKind::log, -inf, nan},
      {NodeKind::log, inf, inf},   {NodeKind::log, nan, nan},   {NodeKind::log, 1, 0},
      {NodeKind::tanh, inf, 1},    {NodeKind::tanh, -inf, -1},  {NodeKind::tanh, nan, nan},
      {NodeKind::tanh, 0, 0},      {NodeKind::erf, inf, 1},     {NodeKind::erf, -inf, -1},
      {NodeKind::erf, nan, nan},   {NodeKind::erf, 0, 0},       {NodeKind::sqrt, inf, inf},
      {NodeKind::sqrt, -1, nan},   {NodeKind::sqrt, nan, nan},  {NodeKind::rsqrt, 0, inf},
      {NodeKind::rsqrt, inf, 0},   {NodeKind::rsqrt, nan, nan}, {NodeKind::neg, inf, -inf},
  };
  for (const gradc::codegen::CpuTarget &target : gradc::codegen::hostTargets())
    for (const Case &test : cases) {
      RowKernel kernel(unary(test.kind), target);
      ASSERT_TRUE(kernel);
      // Nine elements: a whole vector (or two) and a masked one.
      Array got = kernel.run(9, {Array(9, test.x), Array(9, 0.5)})[1];
      expectClose(got, Array(9, test.want), {0, 0},
                  std::string(name(test.kind)) + " of " + std::to_string(test.x));
    }
}

TEST(VectorMath, MaximumAndMinimumPassNanOn) {
  Builder b = Builder::flat();
  int32_t x = b.matrix(), y = b.matrix(), max = b.matrix(), min = b.matrix();
  b.store(max, b.maximum(b.load(x), b.load(y)));
  b.store(min, b.minimum(b.load(x), b.load(y)));
  Array left{NAN, 1, NAN, -INFINITY, 3}, right{1, NAN, NAN, INFINITY, 2}, out(5, 0.0);
  checkAgainstReference(b.take(), 5, {left, right, out, out}, {0, 0});
}

TEST(VectorMath, NarrowStoresRoundToNearestEven) {
  for (Dtype dtype : {Dtype::bf16, Dtype::f16}) {
    Builder b = Builder::flat();
    int32_t in = b.matrix(), out = b.matrix(dtype);
    b.store(out, b.load(in));
    Program program = b.take();
    // Ties both ways, just off ties, overflow by rounding, infinities and NaN.
    Array x{1 + 0x1p-8,  1 + 0x3p-8,  1 + 0x1p-8 + 0x1p-20,
            1 + 0x1p-11, 1 + 0x3p-11, -1 - 0x3p-8,
            65519.0,     65520.0,     0x1.ffp127,
            INFINITY,    -INFINITY,   NAN,
            0.0,         -0.0,        1.5,
            0x1.8p-14};
    std::vector<Array> want{x, Array(x.size(), 0.0)};
    evaluate(program, static_cast<int64_t>(x.size()), want);
    for (const gradc::codegen::CpuTarget &target : gradc::codegen::hostTargets()) {
      RowKernel kernel(program, target);
      ASSERT_TRUE(kernel);
      expectSame(kernel.run(static_cast<int64_t>(x.size()), {x, Array(x.size(), 0.0)})[1], want[1],
                 dtype == Dtype::bf16 ? "bf16" : "f16");
    }
  }
}

} // namespace

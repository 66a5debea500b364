// Infinities and NaN in attention's operands: what the mask hides has no effect, whatever it holds;
// what it does not hide shows; and a query that sees nothing gives 0.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace {

using namespace gradc;
using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Rows of one head's o or dq (contiguous heads apart) whose bits differ from those of another run.
std::vector<int64_t> changedRows(const AttentionSpec &s, const std::vector<float> &x,
                                 const std::vector<float> &y) {
  std::vector<int64_t> rows;
  for (int64_t t = 0; t < s.seq; ++t)
    if (std::memcmp(&x[t * s.headDim], &y[t * s.headDim], s.headDim * sizeof(float)) != 0)
      rows.push_back(t);
  return rows;
}

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> numbers;
  for (int64_t t = first; t <= last; ++t)
    numbers.push_back(t);
  return numbers;
}

/// A causal problem of one head, one of whose tokens is to be spoiled.
struct Spoiled {
  static constexpr int64_t token = 90;
  Data clean, plain;
  Kernels kernels;

  Spoiled(AttentionSpec spec, const CpuTarget &target)
      : clean(spec, true), plain(clean), kernels(clean.spec, target) {
    if (kernels)
      kernels.run(plain);
  }
  /// Queries that see the token's key, and keys that its query sees.
  std::vector<int64_t> later() const {
    int64_t end = clean.spec.window > 0 ? token + clean.spec.window : clean.spec.seq;
    return range(token, std::min(end, clean.spec.seq) - 1);
  }
  std::vector<int64_t> earlier() const {
    return range(clean.spec.window > 0 ? std::max<int64_t>(0, token - clean.spec.window + 1) : 0,
                 token);
  }
  template <typename Spoil> Data run(Spoil spoil) const {
    Data data = clean;
    spoil(data);
    kernels.run(data);
    return data;
  }
  std::vector<int64_t> changed(const Data &run, int which) const {
    return changedRows(clean.spec, run.gradients.gather(clean.spec, which),
                       plain.gradients.gather(clean.spec, which));
  }
  std::vector<int64_t> changedOutput(const Data &run) const {
    return changedRows(clean.spec, run.o, plain.o);
  }
};

void checkMasked(const AttentionSpec &spec, const std::vector<CpuTarget> &targets) {
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(testing::Message() << "window " << spec.window << ", dropout " << spec.dropout
                                    << ", " << target.vectorBits << " bits");
    Spoiled problem(spec, target);
    ASSERT_TRUE(problem.kernels);
    for (int which : {1, 2}) {
      Data run = problem.run([&](Data &x) { x.in.row(which, Spoiled::token)[0] = NAN; });
      EXPECT_EQ(problem.changedOutput(run), problem.later()) << which;
      EXPECT_EQ(problem.changed(run, 0), problem.later()) << which;
    }
    Data badQuery = problem.run([](Data &x) { x.in.row(0, Spoiled::token)[0] = infinity; });
    EXPECT_EQ(problem.changedOutput(badQuery), std::vector<int64_t>{Spoiled::token});
    Data badGradient = problem.run([](Data &x) { x.dORow(Spoiled::token)[0] = NAN; });
    EXPECT_EQ(problem.changedOutput(badGradient), std::vector<int64_t>{});
    for (const Data *run : {&badQuery, &badGradient}) {
      EXPECT_EQ(problem.changed(*run, 0), std::vector<int64_t>{Spoiled::token});
      EXPECT_EQ(problem.changed(*run, 1), problem.earlier());
      EXPECT_EQ(problem.changed(*run, 2), problem.earlier());
    }
  }
}

TEST(AttentionNotFinite, MaskedHasNoEffect) {
  checkMasked(shape(1, 200, 1, 1, 24), hostTarget());
  checkMasked(shape(1, 200, 1, 1, 24, true, 1), hostTarget());
  checkMasked(shape(1, 200, 1, 1, 24, true, 50), everyTarget());
}

TEST(AttentionNotFinite, MaskedHasNoEffectOnNarrowTypes) {
  AttentionSpec spec = shape(1, 200, 1, 1, 24, true, 50);
  spec.dtype = row::Dtype::bf16;
  checkMasked(spec, hostTarget());
}

/// With all heads in one task dk, dv and dq come from the same blocks.
TEST(AttentionNotFinite, MaskedHasNoEffectOnOtherHeads) {
  AttentionSpec spec = shape(1, 150, 4, 4, 16);
  Data plain(spec, false), spoiled = plain;
  Kernels kernels(plain.spec, CpuTarget::host());
  ASSERT_TRUE(kernels);
  for (int64_t d = 0; d < 16; ++d) { // of head 0
    spoiled.in.row(1, 149)[d] = spoiled.in.row(2, 149)[d] = NAN;
    spoiled.in.row(0, 149)[d] = spoiled.dORow(149)[d] = NAN;
  }
  kernels.run(plain);
  kernels.run(spoiled);
  int64_t head = 150 * 16; // q, k and v have their heads apart
  for (int which : {0, 1, 2}) {
    std::vector<float> got = spoiled.gradients.memory, want = plain.gradients.memory;
    int64_t at = spoiled.gradients.offsets[which];
    // Head 0's last query sees all keys; the other queries do not see the last key.
    EXPECT_EQ(std::memcmp(&got[at + head], &want[at + head], 3 * head * sizeof(float)), 0);
    if (which == 0)
      EXPECT_EQ(std::memcmp(&got[at], &want[at], (head - 16) * sizeof(float)), 0);
  }
}

/// The tokens after a sequence's last, which whole tiles would reach, are another sequence's.
TEST(AttentionNotFinite, TheNextSequenceHasNoEffect) {
  for (bool causal : {true, false}) {
    AttentionSpec spec = shape(2, 50, 4, 4, 16, causal);
    Data plain(spec, true), spoiled = plain;
    Kernels kernels(plain.spec, CpuTarget::host());
    ASSERT_TRUE(kernels);
    size_t half = plain.in.memory.size() / 2, outputs = plain.o.size() / 2;
    for (size_t i = half; i < 2 * half; ++i)
      if (plain.in.used[i])
        spoiled.in.memory[i] = NAN;
    std::fill(spoiled.dO.begin() + static_cast<int64_t>(outputs), spoiled.dO.end(), NAN);
    kernels.run(plain);
    kernels.run(spoiled);
    EXPECT_EQ(std::memcmp(spoiled.o.data(), plain.o.data(), outputs * sizeof(float)), 0);
    EXPECT_EQ(std::memcmp(spoiled.gradients.memory.data(), plain.gradients.memory.data(),
                          half * sizeof(float)),
              0);
    EXPECT_TRUE(std::isnan(spoiled.o[outputs]));
  }
}

/// Key 0 is -inf and the queries from 1 on are positive: they see it with a score of -inf, hence a
/// weight of 0, and query 0, which sees nothing else, sees nothing.
Data keyOfMinusInfinity(AttentionSpec spec) {
  Data data(spec, false);
  for (int64_t t = 0; t < spec.seq; ++t)
    for (int64_t d = 0; d < spec.headDim; ++d)
      data.in.row(0, t)[d] = std::fabs(data.in.row(0, t)[d]) + 0.01f;
  for (int64_t d = 0; d < spec.headDim; ++d)
    data.in.row(1, 0)[d] = -infinity;
  return data;
}

TEST(AttentionNotFinite, ScoresOfMinusInfinity) {
  check(keyOfMinusInfinity(shape(1, 50, 1, 1, 16)), everyTarget());
  check(keyOfMinusInfinity(shape(1, 200, 1, 1, 16, false)), hostTarget());
  AttentionSpec spec = shape(1, 130, 1, 1, 16, true, 70);
  spec.dropout = 0.5;
  check(keyOfMinusInfinity(spec), hostTarget());
}

void expectNothing(const Data &run) {
  const AttentionSpec &spec = run.spec;
  EXPECT_EQ(run.lse[0], -infinity);
  for (int64_t d = 0; d < spec.headDim; ++d) {
    EXPECT_EQ(run.o[d], 0);
    EXPECT_EQ(run.gradients.gather(spec, 0)[d], 0);
  }
  for (int which : {0, 1, 2})
    for (float x : run.gradients.gather(spec, which))
      ASSERT_TRUE(std::isfinite(x)) << which;
  for (float x : run.o)
    ASSERT_TRUE(std::isfinite(x));
}

/// Whatever makes the scores -inf, and whatever the value and the gradient are.
TEST(AttentionNotFinite, RowThatSeesNothing) {
  for (const CpuTarget &target : everyTarget())
    for (double rate : {0.0, 0.5}) {
      SCOPED_TRACE(testing::Message() << target.vectorBits << " bits, dropout " << rate);
      AttentionSpec spec = shape(1, 150, 1, 1, 16, true, 1); // each query sees its own key only
      spec.dropout = rate;
      Data byKey = keyOfMinusInfinity(spec), byQuery(spec, false);
      for (int64_t d = 0; d < 16; ++d) {
        byQuery.in.row(0, 0)[d] = -infinity;
        byQuery.in.row(1, 0)[d] = 1;
      }
      Kernels kernels(byKey.spec, target);
      ASSERT_TRUE(kernels);
      for (Data *data : {&byKey, &byQuery})
        for (float value : {1.f, NAN}) {
          Data run = *data;
          run.in.row(2, 0)[3] = run.dORow(0)[2] = value;
          kernels.run(run);
          expectNothing(run);
        }
    }
}

} // namespace

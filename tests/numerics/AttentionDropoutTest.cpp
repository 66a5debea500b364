// Dropout in the attention kernels: against f64 with the masks of ir/row/Philox.h, and what the
// masks are keyed by.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace {

using namespace gradc::codegen;
using namespace gradc::codegen::attention_test;

AttentionSpec dropping(double rate, AttentionSpec spec) {
  spec.dropout = rate;
  return spec;
}

void checkKeyed(const AttentionSpec &spec, bool packed, RandomKeys keys,
                const std::vector<CpuTarget> &targets) {
  Data data(spec, packed);
  data.random = keys;
  check(data, targets);
}

TEST(AttentionDropout, Rates) {
  for (double rate : {0.1, 0.5}) {
    check(dropping(rate, shape(2, 128, 4, 4, 16)), true, everyTarget());
    check(dropping(rate, shape(1, 96, 4, 4, 24, false)), false, hostTarget());
  }
}

TEST(AttentionDropout, RowsThatStartInsideAGroupOfNumbers) {
  check(dropping(0.1, shape(2, 77, 4, 4, 16)), true, everyTarget());
  check(dropping(0.5, shape(2, 101, 4, 4, 16, false)), false, everyTarget());
  check(dropping(0.5, shape(1, 1, 4, 4, 16)), false, hostTarget());
}

TEST(AttentionDropout, Windows) {
  for (int64_t window : {1, 17, 64})
    check(dropping(0.5, shape(1, 150, 4, 4, 16, true, window)), true, hostTarget());
  check(dropping(0.1, shape(1, 1312, 2, 2, 16, true, 70)), false, hostTarget());
  check(dropping(0.1, shape(1, 150, 4, 4, 16, true, 33)), false, everyTarget());
}

TEST(AttentionDropout, GroupedHeads) {
  check(dropping(0.1, shape(2, 77, 6, 2, 16)), true, hostTarget());
  check(dropping(0.5, shape(1, 160, 8, 1, 24)), false, hostTarget());
}

TEST(AttentionDropout, SeveralKeyBlocksAndSuperblocks) {
  check(dropping(0.1, shape(1, 1200, 4, 4, 16)), true, hostTarget());
  check(dropping(0.5, shape(1, 333, 1, 1, 64)), true, hostTarget());
}

TEST(AttentionDropout, FirstRow) {
  checkKeyed(dropping(0.5, shape(1, 128, 2, 2, 16)), false, {7, 3, 256}, hostTarget());
  checkKeyed(dropping(0.1, shape(2, 77, 4, 2, 16)), true, {-1, -2, 154}, hostTarget());
  // Element numbers beyond 32 bits.
  checkKeyed(dropping(0.5, shape(1, 100, 2, 2, 16)), false, {7, 3, 1 << 30}, everyTarget());
}

/// Two sequences at once drop what each of them drops alone, with its own first row.
TEST(AttentionDropout, BatchesAreKeyedByTheirRows) {
  AttentionSpec both = dropping(0.3, shape(2, 80, 4, 4, 16)), one = both;
  one.batch = 1;
  Data whole(both, false), second(one, false);
  // q, k and v of the second sequence.
  for (int which = 0; which < 3; ++which)
    std::memcpy(second.in.at(which), whole.in.at(which) + whole.in.strides[which].batch,
                static_cast<size_t>(second.in.strides[which].batch) * sizeof(float));
  second.random.firstRow = 80;
  Kernels ofTwo(whole.spec, CpuTarget::host()), ofOne(second.spec, CpuTarget::host());
  ASSERT_TRUE(ofTwo && ofOne);
  ofTwo.runForward(whole);
  ofOne.runForward(second);
  std::vector<float> tail(whole.o.end() - static_cast<int64_t>(second.o.size()), whole.o.end());
  // Tasks are cut differently and so are their sums.
  std::vector<double> want(second.o.begin(), second.o.end());
  EXPECT_LE(distance(tail, want), 1e-6);
}

/// Weights made visible: all keys alike, and values that are the rows of the identity.
std::vector<float> visibleWeights(double rate, RandomKeys keys) {
  constexpr int64_t n = 64;
  Data data(dropping(rate, shape(4, n, 8, 8, n, /*causal=*/false)), false);
  data.random = keys;
  for (int which : {0, 1, 2})
    std::fill_n(data.in.at(which), 4 * n * 8 * n, 0.f);
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t t = 0; t < n; ++t)
      for (int64_t h = 0; h < 8; ++h) {
        const auto &to = data.in.strides[2];
        data.in.at(2)[b * to.batch + t * to.token + h * to.head + t] = 1;
      }
  Kernels kernels(data.spec, CpuTarget::host());
  if (!kernels)
    return {};
  kernels.runForward(data);
  return data.o;
}

TEST(AttentionDropout, DropsTheFractionAskedFor) {
  for (double rate : {0.1, 0.5}) {
    std::vector<float> weights = visibleWeights(rate, {1, 2, 0});
    auto count = static_cast<double>(weights.size());
    ASSERT_GT(count, 0);
    double dropped = 0;
    for (float weight : weights) {
      dropped += weight == 0;
      if (weight != 0)
        ASSERT_NEAR(weight, 1 / (64 * (1 - rate)), 1e-7);
    }
    EXPECT_NEAR(dropped / count, rate, 4 * std::sqrt(rate * (1 - rate) / count)) << rate;
  }
}

TEST(AttentionDropout, EveryKeyChangesTheMask) {
  std::vector<float> base = visibleWeights(0.5, {1, 2, 0});
  ASSERT_FALSE(base.empty());
  EXPECT_EQ(base, visibleWeights(0.5, {1, 2, 0}));
  for (RandomKeys keys :
       {RandomKeys{2, 2, 0}, RandomKeys{1, 3, 0}, RandomKeys{1, 2, 64}, RandomKeys{1, 2, 0, 6}}) {
    std::vector<float> other = visibleWeights(0.5, keys);
    double same = 0;
    for (size_t i = 0; i < base.size(); ++i)
      same += base[i] == other[i];
    EXPECT_NEAR(same / static_cast<double>(base.size()), 0.5, 0.01);
  }
}

} // namespace

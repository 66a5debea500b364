// Random numbers and initial values: known answers, moments, orthogonality, independence of
// threads.
#include "runtime/Init.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "runtime/Random.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

TEST(Philox, GivesTheKnownAnswers) {
  // The test vectors that come with the authors' Random123 library.
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, DiffersBySeedNameAndIndex) {
  RandomStream stream(1, "a");
  EXPECT_EQ(stream.bits(5), RandomStream(1, "a").bits(5));
  EXPECT_NE(stream.bits(5), RandomStream(2, "a").bits(5));
  EXPECT_NE(stream.bits(5), RandomStream(1, "b").bits(5));
  EXPECT_NE(stream.bits(5), stream.bits(6));
  EXPECT_NE(RandomStream(uint64_t(1) << 40, "a").bits(5), RandomStream(0, "a").bits(5));
}

Slot makeSlot(std::vector<int64_t> shape, ParameterClass kind) {
  Slot slot;
  slot.name = "h.0.weight";
  slot.role = SlotRole::parameter;
  slot.shape = shape;
  slot.bytes = 4;
  for (int64_t size : shape)
    slot.bytes *= size;
  slot.parameterClass = kind;
  slot.fanIn = shape.front();
  slot.fanOut = shape.back();
  slot.init = {InitRule::Kind::normal, 0.05, 0};
  return slot;
}

std::vector<float> fill(const Slot &slot, InitKind kind, uint64_t seed = 1, int threads = 2) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool.ok());
  std::vector<float> values(std::size_t(slot.elements()), NAN);
  initialise(slot, kind, seed, values.data(), **pool);
  return values;
}

struct Moments {
  double mean = 0, deviation = 0, kurtosis = 0, largest = 0;
};

Moments momentsOf(const std::vector<float> &values) {
  Moments moments;
  double square = 0, fourth = 0;
  for (float value : values) {
    moments.mean += value;
    square += double(value) * value;
    fourth += std::pow(double(value), 4);
    moments.largest = std::max(moments.largest, std::abs(double(value)));
  }
  double count = double(values.size());
  moments.mean /= count;
  moments.deviation = std::sqrt(square / count);
  moments.kurtosis = fourth / count / std::pow(square / count, 2);
  return moments;
}

TEST(Init, FollowsTheFamilysRule) {
  Slot slot = makeSlot({301, 401}, ParameterClass::matrix);
  Moments moments = momentsOf(fill(slot, InitKind::family));
  EXPECT_NEAR(moments.mean, 0, 6e-4);
  EXPECT_NEAR(moments.deviation, 0.05, 5e-4);
  EXPECT_NEAR(moments.kurtosis, 3, 0.07); // of a normal distribution
  slot.init = {InitRule::Kind::constant, 0, 1.5};
  for (float value : fill(slot, InitKind::family))
    ASSERT_EQ(value, 1.5f);
}

TEST(Init, NormalXavierAndKaimingHaveTheirSpread) {
  Slot slot = makeSlot({200, 600}, ParameterClass::matrix);
  EXPECT_NEAR(momentsOf(fill(slot, InitKind::normal)).deviation, 0.02, 2e-4);
  EXPECT_NEAR(momentsOf(fill(slot, InitKind::kaiming)).deviation, 0.1, 1e-3);
  Moments xavier = momentsOf(fill(slot, InitKind::xavier));
  double bound = std::sqrt(6.0 / 800);
  EXPECT_LE(xavier.largest, bound);
  EXPECT_GT(xavier.largest, 0.999 * bound);
  EXPECT_NEAR(xavier.deviation, bound / std::sqrt(3.0), 3e-4);
}

TEST(Init, OrthogonalMatricesAreOrthonormal) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{40, 100}, {100, 40}, {64, 64}, {1, 9}}) {
    auto values = fill(makeSlot({rows, columns}, ParameterClass::matrix), InitKind::orthogonal);
    bool byRows = rows <= columns;
    int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t e = 0; e < length; ++e)
          product += double(values[byRows ? i * columns + e : e * columns + i]) *
                     double(values[byRows ? j * columns + e : e * columns + j]);
        ASSERT_NEAR(product, i == j ? 1 : 0, 1e-6) << rows << " " << columns;
      }
  }
}

TEST(Init, LeavesBiasesAndNormsToTheirRule) {
  for (ParameterClass kind : {ParameterClass::bias, ParameterClass::norm}) {
    Slot slot = makeSlot({100}, kind);
    slot.init = {InitRule::Kind::constant, 0, 1};
    for (InitKind init :
         {InitKind::normal, InitKind::xavier, InitKind::kaiming, InitKind::orthogonal})
      for (float value : fill(slot, init))
        ASSERT_EQ(value, 1.0f);
  }
  // An embedding has no orthogonal form worth having: it is normal.
  Slot slot = makeSlot({1000, 30}, ParameterClass::embedding);
  EXPECT_NEAR(momentsOf(fill(slot, InitKind::orthogonal)).deviation, 0.02, 5e-4);
}

TEST(Init, IsTheSameForAnyNumberOfThreads) {
  for (InitKind kind : {InitKind::family, InitKind::xavier, InitKind::orthogonal}) {
    Slot slot = makeSlot({333, 257}, ParameterClass::matrix);
    auto one = fill(slot, kind, 5, 1), three = fill(slot, kind, 5, 3);
    EXPECT_EQ(std::memcmp(one.data(), three.data(), one.size() * 4), 0);
    auto other = fill(slot, kind, 6, 1);
    EXPECT_NE(std::memcmp(one.data(), other.data(), one.size() * 4), 0);
  }
}

TEST(Init, RefusesUnknownKinds) {
  EXPECT_EQ(parseInitKind("zeros").status().code(), ExitCode::userError);
  ASSERT_TRUE(parseInitKind("kaiming").ok());
  EXPECT_EQ(*parseInitKind("kaiming"), InitKind::kaiming);
}

} // namespace
} // namespace gradc::rt

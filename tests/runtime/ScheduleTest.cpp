// Learning rates against values worked out by hand.
#include "runtime/Schedule.h"

#include <cmath>

#include <gtest/gtest.h>

namespace gradc::rt {
namespace {

Schedule make(LrDecay decay, int64_t warmup, int64_t steps) {
  return {1.0, 0.1, warmup, steps, decay};
}

TEST(Schedule, WarmsUpLinearlyToThePeak) {
  for (LrDecay decay : {LrDecay::cosine, LrDecay::linear, LrDecay::wsd, LrDecay::constant}) {
    Schedule schedule = make(decay, 4, 100);
    EXPECT_DOUBLE_EQ(schedule.rate(1), 0.25);
    EXPECT_DOUBLE_EQ(schedule.rate(2), 0.5);
    EXPECT_DOUBLE_EQ(schedule.rate(4), 1.0);
  }
}

TEST(Schedule, CosineFallsToTheFloor) {
  Schedule schedule = make(LrDecay::cosine, 10, 110);
  EXPECT_DOUBLE_EQ(schedule.rate(60), 0.55);
  EXPECT_NEAR(schedule.rate(35), 0.1 + 0.9 * 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_DOUBLE_EQ(schedule.rate(110), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(1000), 0.1);
}

TEST(Schedule, LinearFallsToTheFloor) {
  Schedule schedule = make(LrDecay::linear, 0, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 0.91);
  EXPECT_DOUBLE_EQ(schedule.rate(5), 0.55);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 0.1);
}

TEST(Schedule, WsdFallsInTheLastTenth) {
  Schedule schedule = make(LrDecay::wsd, 5, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(6), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(90), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(91), 0.91);
  EXPECT_DOUBLE_EQ(schedule.rate(95), 0.55);
  EXPECT_DOUBLE_EQ(schedule.rate(100), 0.1);
  EXPECT_DOUBLE_EQ(make(LrDecay::wsd, 0, 5).rate(4), 1.0); // a tenth of 5 is one step
  EXPECT_DOUBLE_EQ(make(LrDecay::wsd, 0, 5).rate(5), 0.1);
}

TEST(Schedule, ConstantStaysAtThePeak) {
  Schedule schedule = make(LrDecay::constant, 0, 100);
  EXPECT_DOUBLE_EQ(schedule.rate(1), 1.0);
  EXPECT_DOUBLE_EQ(schedule.rate(100), 1.0);
}

TEST(Schedule, CopesWithARunShorterThanItsWarmup) {
  Schedule schedule = make(LrDecay::cosine, 100, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 0.1);
  schedule.warmup = 10;
  EXPECT_DOUBLE_EQ(schedule.rate(10), 1.0);
}

TEST(Schedule, RefusesContradictions) {
  EXPECT_TRUE(validate(make(LrDecay::cosine, 0, 10)).ok());
  Schedule schedule = make(LrDecay::cosine, 0, 10);
  schedule.floor = 2;
  EXPECT_EQ(validate(schedule).code(), ExitCode::userError);
  schedule = make(LrDecay::cosine, 0, 10);
  schedule.peak = NAN;
  EXPECT_EQ(validate(schedule).code(), ExitCode::userError);
  schedule = make(LrDecay::cosine, -1, 10);
  EXPECT_EQ(validate(schedule).code(), ExitCode::userError);
}

} // namespace
} // namespace gradc::rt

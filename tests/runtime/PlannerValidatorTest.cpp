// The validator of memory plans: good plans pass, and every way to spoil one is caught and named.
#include "passes/planner/Planner.h"
#include "passes/planner/Validator.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

using namespace gradc::planner;

namespace {

/// Two live together, a third after the first, in its place.
const std::vector<Buffer> threeBuffers = {{128, 0, 2}, {64, 1, 4}, {100, 2, 4}};

Plan goodPlan() {
  Plan plan;
  plan.offsets = {0, 128, 0};
  plan.peak = plan.lowerBound = 192;
  return plan;
}

/// Expects one violation that contains `text`.
void expectViolation(const std::vector<Buffer> &buffers, const Plan &plan, const char *text) {
  std::vector<std::string> violations = validate(buffers, plan);
  ASSERT_EQ(violations.size(), 1u) << (violations.empty() ? "" : violations[1]);
  EXPECT_NE(violations[0].find(text), std::string::npos) << violations[0];
}

TEST(PlannerValidator, AcceptsAGoodPlan) {
  EXPECT_TRUE(validate(threeBuffers, goodPlan()).empty());
  EXPECT_TRUE(validate({}, Plan()).empty());
}

TEST(PlannerValidator, AcceptsAPlanAboveTheBound) {
  Plan plan = goodPlan();
  plan.offsets[1] = 192;
  plan.peak = 256;
  EXPECT_TRUE(validate(threeBuffers, plan).empty());
}

TEST(PlannerValidator, AcceptsBuffersThatAreNeverLiveAnywhereInTheArena) {
  Plan plan = goodPlan();
  plan.offsets.insert(plan.offsets.end(), {128, 64});
  std::vector<Buffer> buffers = threeBuffers;
  buffers.push_back({0, 0, 4});
  buffers.push_back({64, 1, 1});
  EXPECT_TRUE(validate(buffers, plan).empty());
}

TEST(PlannerValidator, MissingOrSurplusOffset) {
  Plan plan = goodPlan();
  plan.offsets.pop_back();
  expectViolation(threeBuffers, plan, "2 offsets for 3 buffers");
  plan.offsets = {0, 128, 0, 0};
  expectViolation(threeBuffers, plan, "4 offsets for 3 buffers");
}

TEST(PlannerValidator, PlanThatIsAnError) {
  Plan plan = goodPlan();
  plan.error = "buffer 0: nonsense";
  expectViolation(threeBuffers, plan, "the plan is an error: buffer 0: nonsense");
}

TEST(PlannerValidator, NegativeOffset) {
  Plan plan = goodPlan();
  plan.offsets[2] = -64;
  expectViolation(threeBuffers, plan, "buffer 2 (100 bytes, commands [2, 4) at -64): negative");
}

TEST(PlannerValidator, MisalignedOffset) {
  std::vector<Buffer> buffers = {{64, 0, 1, 64}, {32, 1, 2, 32}};
  Plan plan;
  plan.offsets = {0, 16};
  plan.peak = plan.lowerBound = 64;
  expectViolation(buffers, plan, "not a multiple of its alignment 32");
}

TEST(PlannerValidator, BufferAboveThePeak) {
  Plan plan = goodPlan();
  plan.peak = 128;
  expectViolation(threeBuffers, plan, "buffer 1 (64 bytes, commands [1, 4) at 128): ends above");
}

TEST(PlannerValidator, PaddingAboveThePeak) {
  Plan plan;
  plan.offsets = {0};
  plan.peak = plan.lowerBound = 100;
  expectViolation({{100, 0, 1}}, plan, "ends above the peak 100");
}

TEST(PlannerValidator, PeakHigherThanAnyBuffer) {
  Plan plan = goodPlan();
  plan.peak = 256;
  expectViolation(threeBuffers, plan, "the peak is 256, but the highest buffer ends at 192");
}

TEST(PlannerValidator, NegativePeak) {
  Plan plan;
  plan.peak = -64;
  expectViolation({}, plan, "the peak -64 is negative");
}

TEST(PlannerValidator, WrongLowerBound) {
  Plan plan = goodPlan();
  plan.lowerBound = 128;
  expectViolation(threeBuffers, plan, "the most bytes live at one time are 192");
}

TEST(PlannerValidator, OverlapWithTheBufferBelow) {
  Plan plan = goodPlan();
  plan.offsets[1] = 64;
  plan.offsets[2] = 128;
  plan.peak = 256;
  expectViolation(threeBuffers, plan, "buffer 0 (128 bytes, commands [0, 2) at 0) and buffer 1");
}

TEST(PlannerValidator, OverlapWithTheBufferAbove) {
  std::vector<Buffer> buffers = {{64, 0, 4}, {128, 1, 2}, {64, 2, 3}};
  Plan plan;
  plan.offsets = {64, 0, 128};
  plan.peak = plan.lowerBound = 192;
  expectViolation(buffers, plan, "buffer 0 (64 bytes, commands [0, 4) at 64) and buffer 1");
}

TEST(PlannerValidator, TwoBuffersAtOneOffset) {
  std::vector<Buffer> buffers = {{64, 0, 2}, {64, 1, 3}, {64, 5, 6}};
  Plan plan;
  plan.offsets = {0, 0, 0};
  plan.peak = plan.lowerBound = 64;
  expectViolation(buffers, plan, "live at the same time and overlap");
}

TEST(PlannerValidator, OverlapOfPaddingOnly) {
  std::vector<Buffer> buffers = {{100, 0, 2, 64}, {4, 0, 2, 4}};
  Plan plan;
  plan.offsets = {0, 124};
  plan.peak = 128;
  plan.lowerBound = 132;
  expectViolation(buffers, plan, "live at the same time and overlap");
}

TEST(PlannerValidator, BuffersThatMakeNoSense) {
  Plan plan;
  plan.offsets = {0};
  plan.peak = plan.lowerBound = 64;
  expectViolation({{-64, 0, 1}}, plan, "negative size");
  expectViolation({{64, 2, 1}}, plan, "ends before it begins");
  expectViolation({{64, 0, 1, 48}}, plan, "alignment 48 is not a power of two");
  expectViolation({{64, 0, 1, 0}}, plan, "alignment 0 is not a power of two");
  expectViolation({{64, 0, 1, std::numeric_limits<int64_t>::min()}}, plan, "not a power of two");
}

TEST(PlannerValidator, HugeNumbersDoNotOverflow) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  Plan plan;
  plan.offsets = {huge - 63};
  plan.peak = huge;
  expectViolation({{huge, 0, 1}}, plan, "ends above the peak");
  plan.offsets = {0};
  expectViolation({{huge, 0, 1}}, plan, "ends above the peak"); // its padding does
}

TEST(PlannerValidator, ListsAsManyAsAskedFor) {
  std::vector<Buffer> buffers(100, Buffer{64, 0, 1});
  Plan plan;
  plan.offsets.assign(100, 0);
  plan.peak = plan.lowerBound = 64;
  EXPECT_EQ(validate(buffers, plan).size(), 20u);
  EXPECT_EQ(validate(buffers, plan, 3).size(), 3u);
}

/// Whether some two live buffers share a byte: every pair compared.
bool hasOverlap(const std::vector<Buffer> &buffers, const std::vector<int64_t> &offsets) {
  auto end = [&](size_t i) {
    int64_t alignment = buffers[i].alignment;
    return offsets[i] + (buffers[i].size + alignment - 1) / alignment * alignment;
  };
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper &&
          offsets[i] < end(j) && offsets[j] < end(i))
        return true;
  return false;
}

TEST(PlannerValidator, MovedBuffersAreCaughtExactlyWhenTheyCollide) {
  std::mt19937_64 random(11);
  int collisions = 0, others = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 30; ++i) {
      auto lower = static_cast<int64_t>(random() % 50);
      auto length = static_cast<int64_t>(random() % 12 + 1);
      buffers.push_back({static_cast<int64_t>(random() % 1000 + 1), lower, lower + length});
    }
    Plan good = plan(buffers, {.maxSearchSteps = 100'000});
    ASSERT_TRUE(validate(buffers, good).empty());
    for (size_t i = 0; i < buffers.size(); ++i) {
      // A buffer that does not define the peak, moved to another aligned place below it.
      int64_t reserved = (buffers[i].size + 63) / 64 * 64;
      if (good.offsets[i] + reserved == good.peak)
        continue;
      Plan moved = good;
      auto places = static_cast<uint64_t>((good.peak - reserved) / 64 + 1);
      moved.offsets[i] = static_cast<int64_t>(random() % places) * 64;
      bool collides = hasOverlap(buffers, moved.offsets);
      EXPECT_EQ(!validate(buffers, moved).empty(), collides);
      ++(collides ? collisions : others);
    }
  }
  EXPECT_GT(collisions, 100);
  EXPECT_GT(others, 100);
}

TEST(PlannerValidator, LongerLifespansAreCaughtExactlyWhenTheyCollide) {
  std::mt19937_64 random(12);
  int collisions = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 30; ++i) {
      auto lower = static_cast<int64_t>(random() % 50);
      buffers.push_back({64, lower, lower + static_cast<int64_t>(random() % 8 + 1)});
    }
    Plan good = plan(buffers, {.maxSearchSteps = 100'000});
    size_t longer = random() % buffers.size();
    buffers[longer].upper += 3;
    good.lowerBound = lowerBound(buffers);
    bool collides = hasOverlap(buffers, good.offsets);
    EXPECT_EQ(!validate(buffers, good).empty(), collides);
    collisions += collides;
  }
  EXPECT_GT(collisions, 20);
  EXPECT_LT(collisions, 300);
}

} // namespace

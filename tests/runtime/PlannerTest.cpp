// The memory planner: hand-computed cases, bounds it must reach, and every plan validated.
#include "passes/planner/Planner.h"
#include "passes/planner/Validator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <set>

using namespace gradc::planner;

namespace {

std::string join(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Plans and insists on a valid plan.
Plan planChecked(const std::vector<Buffer> &buffers, const PlannerOptions &options = {}) {
  Plan result = plan(buffers, options);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(join(validate(buffers, result)), "");
  return result;
}

using Random = std::mt19937_64;

/// In [low, high]. std::uniform_int_distribution differs between standard libraries.
int64_t draw(Random &random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

std::vector<Buffer> randomProblem(Random &random, int64_t count, int64_t commands) {
  std::vector<Buffer> buffers;
  for (int64_t i = 0; i < count; ++i) {
    int64_t lower = draw(random, 0, commands - 1);
    int64_t upper = draw(random, lower, std::min(commands, lower + commands / 4 + 1));
    buffers.push_back({draw(random, 0, 5000), lower, upper, int64_t{1} << draw(random, 0, 12)});
  }
  return buffers;
}

/// Cuts the rectangle of `height` bytes over commands [lower, upper) in two at random until it has
/// `count` pieces: a problem whose best packing wastes nothing.
void addPerfectPacking(Random &random, std::vector<Buffer> &buffers, int64_t count, int64_t height,
                       int64_t lower, int64_t upper) {
  bool canCutTime = upper - lower >= 2, canCutSpace = height >= 128;
  if (count <= 1 || (!canCutTime && !canCutSpace)) {
    buffers.push_back({height, lower, upper, 64});
    return;
  }
  int64_t first = draw(random, 1, count - 1);
  if (canCutTime && (!canCutSpace || random() % 2 == 0)) {
    int64_t middle = draw(random, lower + 1, upper - 1);
    addPerfectPacking(random, buffers, first, height, lower, middle);
    addPerfectPacking(random, buffers, count - first, height, middle, upper);
  } else {
    int64_t part = draw(random, 1, height / 64 - 1) * 64;
    addPerfectPacking(random, buffers, first, part, lower, upper);
    addPerfectPacking(random, buffers, count - first, height - part, lower, upper);
  }
}

/// A training step: forward keeps some outputs for backward, which uses them last in, first out;
/// temporaries live for a few commands; weight gradients wait for the optimizer at the end.
std::vector<Buffer> trainingStep(int64_t layers, int64_t opsPerLayer) {
  const int64_t tokens = 1024, width = 768, vocabulary = 50257;
  const int64_t hidden = tokens * width * 4;
  std::vector<Buffer> buffers;
  int64_t forwardEnd = layers * opsPerLayer;
  int64_t end = forwardEnd + 4 + 2 * layers * opsPerLayer;
  buffers.push_back({tokens * vocabulary * 4, forwardEnd, forwardEnd + 4}); // logits
  buffers.push_back({4, forwardEnd + 2, end + 1});                          // loss
  for (int64_t op = 0; op < forwardEnd; ++op) {
    int64_t factor = op % 3 == 0 ? 1 : op % 3 == 1 ? 3 : 4;
    int64_t backward = forwardEnd + 4 + 2 * (forwardEnd - 1 - op);
    if (op % 2 == 0)
      buffers.push_back({hidden * factor, op, backward + 1});
    else
      buffers.push_back({hidden * factor, op, op + 2});
    if (op % 5 == 0)
      buffers.push_back({tokens * 4, op, backward + 2}); // row statistics
    buffers.push_back({hidden * factor, backward, backward + 3});
    buffers.push_back({hidden, backward, backward + 1}); // workspace
    if (op % 4 == 0)
      buffers.push_back({width * width * 4 * factor, backward + 1, end + op + 1});
  }
  return buffers;
}

/// The least peak there is, by trying all orders. Any packing can be rebuilt by stacking its
/// buffers in order of offset, each on the highest of those below it that live at the same time.
class Exhaustive {
public:
  explicit Exhaustive(const std::vector<Buffer> &buffers) {
    for (const Buffer &buffer : buffers)
      if (buffer.size > 0 && buffer.lower < buffer.upper)
        live.push_back(buffer);
    stack(0, 0);
  }
  int64_t leastPeak() const { return least; }

private:
  static int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

  void stack(size_t count, int64_t peak) {
    if (peak >= least)
      return;
    if (count == live.size()) {
      least = peak;
      return;
    }
    for (size_t next = count; next < live.size(); ++next) {
      std::swap(live[count], live[next]);
      const Buffer &buffer = live[count];
      int64_t offset = 0;
      for (size_t i = 0; i < count; ++i)
        if (live[i].lower < buffer.upper && buffer.lower < live[i].upper)
          offset = std::max(offset, ends[i]);
      int64_t end = roundUp(offset, buffer.alignment) + roundUp(buffer.size, buffer.alignment);
      ends.push_back(end);
      stack(count + 1, std::max(peak, end));
      ends.pop_back();
      std::swap(live[count], live[next]);
    }
  }

  std::vector<Buffer> live;
  std::vector<int64_t> ends;
  int64_t least = std::numeric_limits<int64_t>::max();
};

TEST(Planner, NothingNeedsNothing) {
  Plan result = planChecked({});
  EXPECT_EQ(result.peak, 0);
  EXPECT_EQ(result.lowerBound, 0);
  EXPECT_TRUE(result.optimal);
}

TEST(Planner, OneBufferLiesAtZeroAndIsPadded) {
  Plan result = planChecked({{100, 5, 7}});
  EXPECT_EQ(result.offsets, std::vector<int64_t>{0});
  EXPECT_EQ(result.peak, 128);
  EXPECT_EQ(result.lowerBound, 128);
}

TEST(Planner, BuffersThatAreNeverLiveReserveNothing) {
  Plan result = planChecked({{0, 0, 9}, {64, 0, 4}, {1 << 20, 3, 3}, {64, 4, 9}});
  EXPECT_EQ(result.offsets, (std::vector<int64_t>{0, 0, 0, 0}));
  EXPECT_EQ(result.peak, 64);
}

TEST(Planner, LifespansAreHalfOpen) {
  EXPECT_EQ(planChecked({{64, 0, 3}, {64, 3, 5}}).peak, 64);
  EXPECT_EQ(planChecked({{64, 0, 4}, {64, 3, 5}}).peak, 128);
}

TEST(Planner, NegativeCommandIndicesAreTimesLikeOthers) {
  EXPECT_EQ(planChecked({{64, -7, -3}, {128, -3, 2}, {64, -4, -2}}).peak, 192);
}

TEST(Planner, MixedAlignments) {
  Plan result = planChecked({{1, 0, 2, 4096}, {1, 0, 2, 1}, {1, 0, 2, 64}});
  EXPECT_EQ(result.peak, 4096 + 64 + 1);
}

TEST(Planner, FirstFitBySizeAloneIsNotEnough) {
  // By hand: the 2 at 0, the first 4 and the 3 on it; the ones at 5 and 0, the last 4 at 1.
  // First-fit by size, area, lifespan or start needs 7 or 9.
  std::vector<Buffer> buffers = {{4, 0, 2, 1}, {4, 4, 6, 1}, {3, 2, 4, 1},
                                 {2, 0, 3, 1}, {1, 2, 6, 1}, {1, 3, 6, 1}};
  Plan result = planChecked(buffers, {.tolerancePermille = 0});
  EXPECT_EQ(result.lowerBound, 6);
  EXPECT_EQ(result.peak, 6);
}

TEST(Planner, TheBoundIsOutOfReachAndThatIsProven) {
  std::vector<Buffer> buffers = {{1, 6, 10, 1}, {5, 3, 12, 1}, {1, 5, 12, 1}, {5, 0, 8, 1},
                                 {3, 7, 11, 1}, {5, 5, 12, 1}, {4, 8, 11, 1}, {3, 10, 12, 1},
                                 {5, 5, 6, 1},  {5, 11, 12, 1}};
  Plan result = planChecked(buffers, {.tolerancePermille = 0});
  EXPECT_EQ(result.lowerBound, 21);
  EXPECT_EQ(result.peak, 22);
  EXPECT_EQ(Exhaustive(buffers).leastPeak(), 22);
  EXPECT_TRUE(result.optimal);
}

TEST(Planner, InvalidBuffersAreNamed) {
  EXPECT_EQ(plan({{64, 0, 1}, {-1, 0, 1}}).error, "buffer 1: size -1 is negative");
  EXPECT_EQ(plan({{64, 5, 3}}).error, "buffer 0: lifespan [5, 3) ends before it begins");
  EXPECT_EQ(plan({{64, 0, 1, 48}}).error, "buffer 0: alignment 48 is not a power of two");
  EXPECT_EQ(plan({{64, 0, 1, 0}}).error, "buffer 0: alignment 0 is not a power of two");
  EXPECT_EQ(plan({{64, 0, 1, -64}}).error, "buffer 0: alignment -64 is not a power of two");
  int64_t half = int64_t{1} << 62;
  EXPECT_NE(plan({{half, 0, 1}, {half, 0, 1}}).error.find("buffer 1: size 4611686018427387904"),
            std::string::npos);
  EXPECT_TRUE(plan({{-1, 0, 1}}).offsets.empty());
}

TEST(Planner, SizesNearTheLimitDoNotOverflow) {
  int64_t quarter = int64_t{1} << 61;
  EXPECT_EQ(planChecked({{quarter, 0, 2}, {quarter, 1, 3}, {quarter, 2, 4}}).peak, 2 * quarter);
}

TEST(Planner, RandomProblemsGiveValidPlans) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers = randomProblem(random, draw(random, 1, 60), draw(random, 1, 40));
    Plan result = planChecked(buffers, {.maxSearchSteps = 200'000});
    EXPECT_GE(result.peak, result.lowerBound);
    EXPECT_EQ(result.lowerBound, lowerBound(buffers));
  }
}

TEST(Planner, TinyProblemsAreSolvedExactly) {
  Random random(2);
  int aboveBound = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Buffer> buffers;
    for (int64_t i = draw(random, 1, 9); i > 0; --i) {
      int64_t lower = draw(random, 0, 7);
      buffers.push_back(
          {draw(random, 0, 5), lower, draw(random, lower, 8), int64_t{1} << draw(random, 0, 3)});
    }
    Plan result = planChecked(buffers, {.tolerancePermille = 0});
    ASSERT_TRUE(result.optimal) << "round " << round;
    if (result.peak == result.lowerBound)
      continue; // proves itself: the validator has checked the bound
    ++aboveBound;
    ASSERT_EQ(result.peak, Exhaustive(buffers).leastPeak()) << "round " << round;
  }
  EXPECT_GT(aboveBound, 10);
}

TEST(Planner, TrainingStepsReachTheBound) {
  for (int64_t layers : {1, 2, 12, 48}) {
    std::vector<Buffer> buffers = trainingStep(layers, 36);
    Plan result = planChecked(buffers);
    EXPECT_LE(result.peak, result.lowerBound + result.lowerBound / 100) << layers << " layers";
    EXPECT_EQ(result.searchSteps, 0) << layers << " layers";
  }
}

TEST(Planner, PerfectPackingsAreFoundBySearch) {
  Random random(3);
  int searched = 0;
  for (int round = 0; round < 30; ++round) {
    std::vector<Buffer> buffers;
    addPerfectPacking(random, buffers, 60, 1 << 20, 0, 1000);
    std::shuffle(buffers.begin(), buffers.end(), random);
    Plan result = planChecked(buffers, {.tolerancePermille = 0});
    ASSERT_EQ(result.lowerBound, 1 << 20);
    EXPECT_EQ(result.peak, 1 << 20) << "round " << round;
    searched += result.strategy == "branch and bound";
  }
  EXPECT_GT(searched, 10);
}

TEST(Planner, ProblemsApartInTimeArePackedEachByItself) {
  Random random(4);
  std::vector<Buffer> buffers;
  for (int64_t part = 0; part < 20; ++part)
    addPerfectPacking(random, buffers, 30, 1 << 16, part * 200, part * 200 + 150);
  EXPECT_EQ(planChecked(buffers, {.tolerancePermille = 0}).peak, 1 << 16);
}

TEST(Planner, WithoutSearchThePlanIsStillValid) {
  Random random(5);
  std::vector<Buffer> buffers;
  addPerfectPacking(random, buffers, 200, 1 << 20, 0, 1000);
  Plan result = planChecked(buffers, {.maxSearchSteps = 0});
  EXPECT_EQ(result.searchSteps, 0);
  EXPECT_GT(result.peak, result.lowerBound);
  EXPECT_FALSE(result.optimal);
}

TEST(Planner, DifferentHeuristicsWinOnDifferentProblems) {
  Random random(10);
  std::set<std::string> winners;
  for (int round = 0; round < 50; ++round)
    winners.insert(
        planChecked(randomProblem(random, 100, 100 + 20 * round), {.maxSearchSteps = 0}).strategy);
  EXPECT_GE(winners.size(), 3u);
}

TEST(Planner, SearchStopsAtItsCap) {
  Random random(6);
  std::vector<Buffer> buffers;
  addPerfectPacking(random, buffers, 400, 1 << 24, 0, 4000);
  Plan result = planChecked(buffers, {.tolerancePermille = 0, .maxSearchSteps = 2'000'000});
  EXPECT_GT(result.searchSteps, 0);
  // The cap is looked at between decisions, each of which takes a few thousand steps at most.
  EXPECT_LE(result.searchSteps, 2'200'000);
}

TEST(Planner, SameInputSamePlan) {
  Random random(7);
  std::vector<Buffer> buffers = randomProblem(random, 300, 500);
  Plan first = planChecked(buffers), second = planChecked(buffers);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.peak, second.peak);
  EXPECT_EQ(first.strategy, second.strategy);
  EXPECT_EQ(first.searchSteps, second.searchSteps);
}

TEST(Planner, OnlyTheOrderOfCommandsMatters) {
  Random random(8);
  std::vector<Buffer> buffers = randomProblem(random, 200, 300), stretched = buffers;
  for (Buffer &buffer : stretched) {
    buffer.lower = 7 * buffer.lower + 1000;
    buffer.upper = 7 * buffer.upper + 1000;
  }
  EXPECT_EQ(planChecked(buffers).offsets, planChecked(stretched).offsets);
}

TEST(Planner, FiveThousandBuffersAreQuick) {
  Random random(9);
  std::vector<Buffer> step = trainingStep(48, 36), hard = randomProblem(random, 5000, 8000);
  ASSERT_GT(step.size(), 5000u);
  auto start = std::chrono::steady_clock::now();
  planChecked(step);
  planChecked(hard);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  // A third of a second; the bound leaves room for sanitizers and busy machines, and still
  // catches a cubic algorithm.
  EXPECT_LT(seconds.count(), 20);
}

} // namespace

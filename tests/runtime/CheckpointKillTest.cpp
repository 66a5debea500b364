// A process killed while it saves: whatever the moment, a valid checkpoint is there to load, and
// never an older one than the last that was reported saved.
#include "runtime/checkpoint/Checkpoint.h"

#include "tests/runtime/DataFixture.h"

#include <chrono>
#include <csignal>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace gradc::rt {
namespace {

class CheckpointKill : public DataFixture {
protected:
  /// Saves steps from `first` on until killed; each success is reported through the pipe.
  [[noreturn]] void saveForever(uint64_t first, int report) {
    std::vector<float> weights(50000);
    for (uint64_t step = first;; ++step) {
      std::fill(weights.begin(), weights.end(), float(step));
      std::vector<TensorView> tensors = {{"w", FileDtype::f32, {50000}, weights.data()}};
      // Every third step is saved twice, to be killed inside a replacement too.
      for (int times = 0; times < (step % 3 == 0 ? 2 : 1); ++times)
        if (!saveCheckpoint(path("c"), {step, "m", step, 0, {}}, tensors, 2).ok())
          ::_exit(3);
      if (::write(report, &step, sizeof(step)) != sizeof(step))
        ::_exit(4);
    }
  }
};

TEST_F(CheckpointKill, LeavesAValidCheckpoint) {
  std::mt19937 random(12345);
  uint64_t last = 0;
  bool sawLeftover = false;
  int64_t window = 40000; // microseconds until the kill, at most
  for (int round = 0; round < 25; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      saveForever(last + 1, ends[1]);
    }
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % window));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save: " << WEXITSTATUS(status);

    uint64_t reported = last, step;
    while (::read(ends[0], &step, sizeof(step)) == sizeof(step))
      reported = step;
    ::close(ends[0]);
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      for (const auto &inner : std::filesystem::directory_iterator(entry.path()))
        sawLeftover |= inner.path().extension() == ".tmp";

    auto result = loadNewestCheckpoint(path("c"), "m");
    ASSERT_OK(result.status());
    EXPECT_TRUE(result->skipped.empty()) << result->skipped.front();
    if (reported == 0 && !result->newest) { // killed before the first commit
      window += window / 4;                 // on a busy machine that takes its time
      continue;
    }
    ASSERT_TRUE(result->newest);
    last = result->newest->manifest.step;
    EXPECT_GE(last, reported);
    EXPECT_LE(last, reported + 1);
    std::vector<float> weights(50000);
    ASSERT_OK(toFloats(*result->newest->tensors.find("w"), weights.data()));
    for (float weight : weights)
      ASSERT_EQ(weight, float(last));
  }
  EXPECT_GT(last, 0u);
  EXPECT_TRUE(sawLeftover) << "no kill hit a save: the test proved nothing";
}

} // namespace
} // namespace gradc::rt

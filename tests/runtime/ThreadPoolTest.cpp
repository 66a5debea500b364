// ThreadPool: every task once, on any number of threads, job after job.
#include "runtime/cpu/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gradc::rt {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 7}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(pool.ok());
    for (int64_t tasks : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> counts(static_cast<std::size_t>(tasks));
      (*pool)->parallelFor(tasks, [&](int64_t task, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        ++counts[std::size_t(task)];
      });
      for (auto &count : counts)
        EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, NeverMixesJobsThatFollowEachOther) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  int64_t total = 0, expected = 0;
  for (int64_t job = 0; job < 20000; ++job) {
    int64_t tasks = 1 + job % 5;
    std::atomic<int64_t> sum{0}; // on the stack: a late task of this job would be caught by tsan
    (*pool)->parallelFor(tasks, [&](int64_t task, int) { sum += job * 10 + task; });
    total += sum;
    expected += tasks * job * 10 + tasks * (tasks - 1) / 2;
  }
  EXPECT_EQ(total, expected);
}

TEST(ThreadPool, WakesAfterSleep) {
  auto pool = ThreadPool::create(2, true);
  ASSERT_TRUE(pool.ok());
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> count{0};
    (*pool)->parallelFor(10, [&](int64_t, int) { ++count; });
    EXPECT_EQ(count, 10);
  }
}

TEST(ThreadPool, UsesSeveralThreadsAtOnce) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  // Each task waits for the other: one thread alone would never end, so give up after a while.
  std::atomic<int> arrived{0};
  std::atomic<bool> together{true};
  (*pool)->parallelFor(2, [&](int64_t, int) {
    ++arrived;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (arrived < 2)
      if (std::chrono::steady_clock::now() > end) {
        together = false;
        return;
      }
  });
  EXPECT_TRUE(together);
}

TEST(ThreadPool, GivesEveryThreadAStackForKernels) {
  auto useStack = [](int64_t task, int) {
    volatile char block[12 << 20];
    std::memset(const_cast<char *>(block), int(task), sizeof(block));
    EXPECT_EQ(block[sizeof(block) - 1], char(task));
  };
  Status status = runOnKernelStack([&] {
    auto pool = ThreadPool::create(2);
    ASSERT_TRUE(pool.ok());
    (*pool)->parallelFor(8, useStack);
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ThreadPool, RefusesImpossibleNumbers) {
  EXPECT_EQ(ThreadPool::create(0).status().code(), ExitCode::userError);
  EXPECT_EQ(ThreadPool::create(-3).status().code(), ExitCode::userError);
  EXPECT_GE(availableProcessors(), 1);
}

} // namespace
} // namespace gradc::rt

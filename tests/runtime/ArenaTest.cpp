// Arena: alignment, zeroing, refusal, high water.
#include "runtime/cpu/Arena.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include <limits>

#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

class ArenaTest : public testing::Test {
protected:
  void SetUp() override {
    auto created = ThreadPool::create(2);
    ASSERT_TRUE(created.ok());
    pool = std::move(*created);
  }
  std::unique_ptr<ThreadPool> pool;
};

TEST_F(ArenaTest, IsAlignedZeroedAndWritable) {
  for (int64_t bytes : {int64_t(1), int64_t(4096), int64_t(3) << 20, (int64_t(6) << 20) + 12}) {
    auto arena = Arena::create(bytes, "a test", *pool);
    ASSERT_TRUE(arena.ok()) << arena.status().message();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena->data()) % (2 << 20), 0u);
    EXPECT_EQ(arena->size(), bytes);
    EXPECT_TRUE(std::all_of(arena->data(), arena->data() + bytes,
                            [](std::byte byte) { return byte == std::byte(0); }));
    std::memset(arena->data(), 1, std::size_t(bytes));
  }
}

TEST_F(ArenaTest, OfNothingIsEmpty) {
  auto arena = Arena::create(0, "a test", *pool);
  ASSERT_TRUE(arena.ok());
  EXPECT_EQ(arena->size(), 0);
  EXPECT_EQ(arena->highWater(), 0);
}

TEST_F(ArenaTest, RefusesMoreThanThereIsAndSaysHowMuch) {
  int64_t available = availableMemoryBytes();
  ASSERT_GT(available, 0);
  ASSERT_LT(available, int64_t(1) << 50);
  auto arena = Arena::create(int64_t(1) << 50, "the memory of a step", *pool);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.status().code(), ExitCode::machineFault);
  EXPECT_TRUE(arena.status().message().starts_with("the memory of a step needs 1048576.00 GiB"))
      << arena.status().message();
  EXPECT_NE(arena.status().message().find("is available"), std::string::npos);
}

TEST_F(ArenaTest, HighWaterIsTheLastByteWritten) {
  auto arena = Arena::create(int64_t(5) << 20, "a test", *pool);
  ASSERT_TRUE(arena.ok());
  arena->fillPattern(*pool);
  EXPECT_EQ(arena->highWater(), 0);
  arena->data()[4096] = std::byte(0x55);
  EXPECT_EQ(arena->highWater(), 4096 + 8);
  arena->data()[arena->size() - 1] = std::byte(0x55);
  EXPECT_EQ(arena->highWater(), arena->size());
}

TEST_F(ArenaTest, KeepsItsMemoryWhenMoved) {
  auto arena = Arena::create(4096, "a test", *pool);
  ASSERT_TRUE(arena.ok());
  std::byte *data = arena->data();
  data[7] = std::byte(9);
  Arena moved = std::move(*arena);
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.data()[7], std::byte(9));
}

TEST(ResidentPeak, GrowsWithWhatIsTouched) {
  auto pool = ThreadPool::create(1);
  ASSERT_TRUE(pool.ok());
  constexpr int64_t bytes = int64_t(100) << 20;
  auto arena = Arena::create(bytes, "a test", **pool);
  ASSERT_TRUE(arena.ok());
  EXPECT_GE(residentPeakBytes(), bytes);
}

TEST(FormatBytes, ReadsWell) {
  EXPECT_EQ(formatBytes(512), "0.5 KiB");
  EXPECT_EQ(formatBytes(int64_t(3) << 19), "1.5 MiB");
  EXPECT_EQ(formatBytes(int64_t(5) << 29), "2.50 GiB");
}

} // namespace
TEST(Arena, HeadroomOfAControlGroup) {
  constexpr int64_t none = std::numeric_limits<int64_t>::max() - 4095; // as the system says it
  EXPECT_EQ(groupHeadroom(1000, 300, 100), 800);
  EXPECT_EQ(groupHeadroom(1000, 300, 400), 1000);
  EXPECT_EQ(groupHeadroom(1000, 1300, 100), 0);
  EXPECT_EQ(groupHeadroom(1000, 300, -1), 700);
  EXPECT_EQ(groupHeadroom(none, 1 << 20, 1 << 30), none);
  EXPECT_GT(groupHeadroom(-1, 300, 100), none);
  EXPECT_GT(groupHeadroom(1000, -1, 100), none);
}

} // namespace gradc::rt

// The suite of DeviceConformance.h.
#include "DeviceConformance.h"

#include <cmath>

#include <gtest/gtest.h>

extern "C" {
void gradc_launch(GradcContext *context, const GradcLaunch *launch);
void gradc_record_event(GradcContext *context, const GradcStreamEvent *event);
void gradc_wait_event(GradcContext *context, const GradcStreamEvent *event);
}

namespace gradc::rt {
namespace {

class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {
protected:
  void SetUp() override {
    auto created = GetParam().create();
    ASSERT_TRUE(created.ok()) << created.status().message();
    device = std::move(*created);
  }

  /// out = in + addend over `tasks` numbers.
  GradcLaunch add(const GradcBuffer *buffers, int64_t tasks) const {
    return {"add", GetParam().kernel, GetParam().gpu, 1, tasks, 3, buffers, 0, 0, 0};
  }
  std::vector<float> read(GradcSpace space, int64_t offset, int64_t count) {
    std::vector<float> numbers(count);
    EXPECT_TRUE(device->synchronize().ok());
    EXPECT_TRUE(device->read(space, offset, numbers.data(), count * 4).ok());
    return numbers;
  }
  void write(GradcSpace space, int64_t offset, const std::vector<float> &numbers) {
    EXPECT_TRUE(device->write(space, offset, numbers.data(), int64_t(numbers.size()) * 4).ok());
  }

  std::unique_ptr<Device> device;
};

TEST_P(DeviceConformance, MemoryIsZeroAtFirst) {
  ASSERT_TRUE(device->allocate({256, 512, nullptr, 0}).ok());
  EXPECT_EQ(read(GRADC_STATE, 0, 64), std::vector<float>(64, 0));
  EXPECT_EQ(read(GRADC_ARENA, 0, 128), std::vector<float>(128, 0));
}

TEST_P(DeviceConformance, ReadsWhatWasWritten) {
  const float constants[] = {7, 8};
  ASSERT_TRUE(device->allocate({256, 256, constants, sizeof(constants)}).ok());
  write(GRADC_STATE, 100, {1, 2, 3});
  write(GRADC_ARENA, 100, {4, 5, 6});
  EXPECT_EQ(read(GRADC_STATE, 96, 5), (std::vector<float>{0, 1, 2, 3, 0}));
  EXPECT_EQ(read(GRADC_ARENA, 104, 2), (std::vector<float>{5, 6}));
  EXPECT_EQ(read(GRADC_CONSTANT, 4, 1), std::vector<float>{8});
}

TEST_P(DeviceConformance, RefusesRangesOutsideOfASpace) {
  ASSERT_TRUE(device->allocate({64, 64, nullptr, 0}).ok());
  float value = 1;
  EXPECT_TRUE(device->write(GRADC_STATE, 60, &value, 4).ok());
  EXPECT_EQ(device->write(GRADC_STATE, 61, &value, 4).code(), ExitCode::defect);
  EXPECT_EQ(device->read(GRADC_ARENA, -4, &value, 4).code(), ExitCode::defect);
  EXPECT_EQ(device->read(GRADC_CONSTANT, 0, &value, 4).code(), ExitCode::defect);
}

TEST_P(DeviceConformance, LendsMemoryToReadAndToWrite) {
  ASSERT_TRUE(device->allocate({256, 256, nullptr, 0}).ok());
  write(GRADC_STATE, 0, {1, 2, 3, 4});
  auto numbers = [](std::byte *bytes) { return reinterpret_cast<float *>(bytes); };
  std::vector<float> seen;
  Status status = device->access(GRADC_STATE, 4, 8, Access::read, [&](std::byte *bytes) {
    seen.assign(numbers(bytes), numbers(bytes) + 2);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(seen, (std::vector<float>{2, 3}));
  status = device->access(GRADC_STATE, 4, 8, Access::readWrite, [&](std::byte *bytes) {
    numbers(bytes)[1] += numbers(bytes)[0];
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  status = device->access(GRADC_STATE, 0, 4, Access::write, [&](std::byte *bytes) {
    numbers(bytes)[0] = 7;
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read(GRADC_STATE, 0, 4), (std::vector<float>{7, 2, 5, 4}));
}

TEST_P(DeviceConformance, LendsNothingOutsideOfASpaceAndPassesFailuresOn) {
  ASSERT_TRUE(device->allocate({64, 64, nullptr, 0}).ok());
  int uses = 0;
  auto use = [&](std::byte *) {
    ++uses;
    return Status::user("no");
  };
  for (Access mode : {Access::read, Access::readWrite})
    EXPECT_EQ(device->access(GRADC_STATE, 61, 4, mode, use).code(), ExitCode::defect);
  EXPECT_EQ(uses, 0);
  for (Access mode : {Access::read, Access::write, Access::readWrite})
    EXPECT_EQ(device->access(GRADC_STATE, 0, 4, mode, use).message(), "no");
  EXPECT_EQ(uses, 3);
}

TEST_P(DeviceConformance, KnowsHowFarTheArenaWasWritten) {
  ASSERT_TRUE(device->allocate({64, 4096, nullptr, 0}).ok());
  for (int64_t end : {4096, 1024, 8}) {
    ASSERT_TRUE(device->fillArena().ok());
    write(GRADC_ARENA, end - 4, {1});
    auto reached = device->arenaHighWater();
    ASSERT_TRUE(reached.ok()) << reached.status().message();
    EXPECT_EQ(*reached, end);
  }
}

TEST_P(DeviceConformance, RefusesMoreMemoryThanThereIs) {
  Status status = device->allocate({int64_t(1) << 49, int64_t(1) << 49, nullptr, 0});
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_NE(status.message().find("524288.00 GiB"), std::string::npos) << status.message();
}

TEST_P(DeviceConformance, ResolvesSpacesOffsetsAndIterations) {
  const float constants[] = {0, 100};
  ASSERT_TRUE(device->allocate({1024, 1024, constants, sizeof(constants)}).ok());
  write(GRADC_STATE, 64, {1, 2, 3, 4, 5, 6});
  // `in` moves by two floats an iteration.
  const GradcBuffer buffers[] = {
      {GRADC_STATE, 64, 8, 8}, {GRADC_CONSTANT, 4, 0, 4}, {GRADC_ARENA, 128, 0, 8}};
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    ASSERT_TRUE(device->launch(add(buffers, 2), iteration).ok());
    float first = float(101 + 2 * iteration);
    EXPECT_EQ(read(GRADC_ARENA, 128, 2), (std::vector<float>{first, first + 1}));
  }
}

TEST_P(DeviceConformance, LaunchesTakeEffectInOrder) {
  ASSERT_TRUE(device->allocate({1024, 1024, nullptr, 0}).ok());
  write(GRADC_STATE, 0, {1, 2});
  const GradcBuffer there[] = {
      {GRADC_STATE, 0, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_ARENA, 0, 0, 4}};
  const GradcBuffer back[] = {
      {GRADC_ARENA, 0, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_STATE, 0, 0, 4}};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device->launch(add(there, 1), 0).ok());
    ASSERT_TRUE(device->launch(add(back, 1), 0).ok());
  }
  EXPECT_EQ(read(GRADC_STATE, 0, 2), (std::vector<float>{13, 2}));
}

/// Two launches, of which the second reads what the first wrote.
const GradcBuffer firstBuffers[] = {
    {GRADC_STATE, 0, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_ARENA, 0, 0, 4}};
const GradcBuffer secondBuffers[] = {
    {GRADC_ARENA, 0, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_STATE, 8, 0, 4}};
GradcLaunch programLaunches[2];
void runTwoLaunches(GradcContext *context) {
  gradc_launch(context, &programLaunches[0]);
  gradc_launch(context, &programLaunches[1]);
}

TEST_P(DeviceConformance, RunsAProgramAsOftenAsAsked) {
  ASSERT_TRUE(device->allocate({1024, 1024, nullptr, 0}).ok());
  programLaunches[0] = add(firstBuffers, 1);
  programLaunches[1] = add(secondBuffers, 1);
  const GradcProgram program{"two", runTwoLaunches};
  for (float value : {1.f, 5.f, 9.f, 13.f}) {
    write(GRADC_STATE, 0, {value, 2});
    Status status = device->run(program, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    write(GRADC_STATE, 0, {0, 0}); // comes after the run
    EXPECT_EQ(read(GRADC_STATE, 8, 1), std::vector<float>{value + 4});
  }
}

/// On stream 1 what reads the first launch's result and is read by the last; beside it a launch
/// that then overwrites what was read.
const GradcBuffer sideBuffers[] = {
    {GRADC_ARENA, 0, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_ARENA, 64, 0, 4}};
const GradcBuffer overwritingBuffers[] = {
    {GRADC_STATE, 4, 0, 4}, {GRADC_STATE, 4, 0, 4}, {GRADC_ARENA, 0, 0, 4}};
const GradcBuffer lastBuffers[] = {
    {GRADC_ARENA, 64, 0, 4}, {GRADC_ARENA, 0, 0, 4}, {GRADC_STATE, 8, 0, 4}};
const GradcStreamEvent firstOver{0, 0}, sideBegins{0, 1}, sideOver{1, 1}, lastBegins{1, 0};
GradcLaunch streamLaunches[4];
void runTwoStreams(GradcContext *context) {
  gradc_launch(context, &streamLaunches[0]);
  gradc_record_event(context, &firstOver);
  gradc_wait_event(context, &sideBegins);
  gradc_launch(context, &streamLaunches[1]);
  gradc_record_event(context, &sideOver);
  gradc_wait_event(context, &lastBegins);
  gradc_launch(context, &streamLaunches[2]);
  gradc_launch(context, &streamLaunches[3]);
}

TEST_P(DeviceConformance, RunsStreamsInTheOrderOfTheirEvents) {
  ASSERT_TRUE(device->allocate({1024, 1024, nullptr, 0}).ok());
  const GradcBuffer *buffers[] = {firstBuffers, sideBuffers, overwritingBuffers, lastBuffers};
  for (int i = 0; i < 4; ++i)
    streamLaunches[i] = add(buffers[i], 1);
  streamLaunches[1].stream = 1;
  const GradcProgram program{"streams", runTwoStreams};
  for (float value : {1.f, 5.f, 9.f, 13.f}) {
    write(GRADC_STATE, 0, {value, 2});
    Status status = device->run(program, nullptr);
    ASSERT_TRUE(status.ok()) << status.message();
    write(GRADC_STATE, 0, {0, 0}); // comes after the run, on all of its streams
    EXPECT_EQ(read(GRADC_STATE, 8, 1), std::vector<float>{value + 4 + 4});
  }
}

TEST_P(DeviceConformance, TimesAProgramsLaunches) {
  ASSERT_TRUE(device->allocate({1024, 1024, nullptr, 0}).ok());
  programLaunches[0] = add(firstBuffers, 1);
  programLaunches[1] = add(secondBuffers, 1);
  const GradcProgram program{"two", runTwoLaunches};
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::vector<LaunchTimes> times;
    auto before = std::chrono::steady_clock::now();
    Status status =
        device->run(program, [&](const LaunchRecord &record) { times.push_back(record.times); });
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(times.size(), 2u);
    EXPECT_LE(before, times[0].begin);
    EXPECT_LE(times[0].begin, times[0].end);
    EXPECT_LE(times[0].end, times[1].begin);
    EXPECT_LE(times[1].begin, times[1].end);
    EXPECT_LE(times[1].end, std::chrono::steady_clock::now());
    ASSERT_TRUE(device->run(program, nullptr).ok());
  }
}

TEST_P(DeviceConformance, MultipliesStridedMatrices) {
  constexpr int64_t m = 5, n = 7, k = 6, batch = 3;
  ASSERT_TRUE(device->allocate({1 << 14, 1 << 14, nullptr, 0}).ok());
  std::vector<float> a, b, c(batch * m * n, 0.5f);
  for (int64_t i = 0; i < batch * m * k; ++i)
    a.push_back(float(i % 11) - 5);
  for (int64_t i = 0; i < n * k; ++i)
    b.push_back(float(i % 5) - 2);
  write(GRADC_STATE, 0, a);
  write(GRADC_STATE, 8192, b);
  GradcGemm gemms[2]{}; // a device may know a product by its address
  for (int64_t accumulate : {0, 1}) {
    write(GRADC_ARENA, 0, c);
    GradcGemm &gemm = gemms[accumulate];
    gemm.name = "gemm";
    gemm.m = m, gemm.n = n, gemm.k = k;
    gemm.batch[0] = batch, gemm.batch[1] = 1;
    gemm.a = {{GRADC_STATE, 0, 0, batch * m * k * 4}, k, 1, {m * k, 0}, GRADC_F32};
    gemm.b = {{GRADC_STATE, 8192, 0, n * k * 4},
              1,
              k,
              {0, 0}, // transposed, the same for the whole batch
              GRADC_F32};
    gemm.c = {{GRADC_ARENA, 0, 0, batch * m * n * 4}, n, 1, {m * n, 0}, GRADC_F32};
    gemm.accumulate = accumulate;
    ASSERT_TRUE(device->gemm(gemm, 0).ok());
    std::vector<float> result = read(GRADC_ARENA, 0, batch * m * n);
    for (int64_t i = 0; i < batch * m * n; ++i) {
      double expected = accumulate ? c[i] : 0;
      for (int64_t j = 0; j < k; ++j)
        expected += double(a[i / n * k + j]) * double(b[i % n * k + j]);
      EXPECT_EQ(result[i], expected) << i; // small integers and a half: exact
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, testing::ValuesIn(devicesUnderTest()),
                         [](const auto &device) { return device.param.name; });

} // namespace
} // namespace gradc::rt

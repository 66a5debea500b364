// The functions that programs call: order, iterations, the first failure, the observer; and the CPU
// device's resolution of buffers.
#include "runtime/StepAbi.h"

#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/CpuDevice.h"

extern "C" {
void gradc_launch(GradcContext *context, const GradcLaunch *launch);
void gradc_gemm(GradcContext *context, const GradcGemm *gemm);
void gradc_begin_iteration(GradcContext *context, int64_t iteration);
}

namespace gradc::rt {
namespace {

/// Writes down what it is asked to do; fails a launch named "bad".
class RecordingDevice : public Device {
public:
  Status allocate(const SpaceSizes &) override { return Status(); }
  Status write(GradcSpace, int64_t, const void *, int64_t) override { return Status(); }
  Status read(GradcSpace, int64_t, void *, int64_t) override { return Status(); }
  std::byte *hostAddress(GradcSpace) override { return nullptr; }
  Status launch(const GradcLaunch &launch, int64_t iteration) override {
    if (std::string(launch.name) == "bad")
      return Status::machine("the device fell over");
    calls.push_back(std::string(launch.name) + std::to_string(iteration));
    return Status();
  }
  Status gemm(const GradcGemm &gemm, int64_t iteration) override {
    calls.push_back(std::string(gemm.name) + std::to_string(iteration));
    return Status();
  }
  Status synchronize() override {
    ++synchronizations;
    return Status();
  }

  std::vector<std::string> calls;
  int synchronizations = 0;
};

GradcLaunch launchNamed(const char *name) { return {name, nullptr, 1, 1, 0, nullptr, 30, 40, 0}; }

TEST(StepAbi, PassesCallsInOrderWithTheirIteration) {
  RecordingDevice device;
  GradcContext context;
  context.device = &device;
  GradcLaunch a = launchNamed("a");
  GradcGemm g{};
  g.name = "g";
  gradc_launch(&context, &a);
  gradc_begin_iteration(&context, 3);
  gradc_gemm(&context, &g);
  gradc_launch(&context, &a);
  EXPECT_EQ(device.calls, (std::vector<std::string>{"a0", "g3", "a3"}));
  EXPECT_EQ(device.synchronizations, 0);
}

TEST(StepAbi, DoesNothingAfterTheFirstFailure) {
  RecordingDevice device;
  GradcContext context;
  context.device = &device;
  GradcLaunch good = launchNamed("good"), bad = launchNamed("bad");
  GradcGemm g{};
  g.name = "g";
  gradc_launch(&context, &bad);
  gradc_launch(&context, &good);
  gradc_gemm(&context, &g);
  EXPECT_TRUE(device.calls.empty());
  EXPECT_EQ(context.status.code(), ExitCode::machineFault);
  EXPECT_EQ(context.status.message(), "the device fell over");
}

TEST(StepAbi, TellsTheObserverWhatEachLaunchTook) {
  RecordingDevice device;
  GradcContext context;
  context.device = &device;
  std::vector<LaunchRecord> records;
  context.observe = [&](const LaunchRecord &record) { records.push_back(record); };
  GradcLaunch a = launchNamed("a");
  GradcGemm g{};
  g.name = "g";
  g.m = 2, g.n = 3, g.k = 5;
  g.batch[0] = 7, g.batch[1] = 1;
  gradc_launch(&context, &a);
  gradc_gemm(&context, &g);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(device.synchronizations, 2);
  EXPECT_EQ(records[0].kind, LaunchKind::kernel);
  EXPECT_EQ(records[0].flops, 30);
  EXPECT_EQ(records[0].bytes, 40);
  EXPECT_EQ(records[1].kind, LaunchKind::gemm);
  EXPECT_EQ(records[1].flops, 2 * 7 * 2 * 3 * 5);
  EXPECT_EQ(records[1].bytes, 4 * 7 * (2 * 5 + 5 * 3 + 2 * 3));
  EXPECT_LE(records[0].begin, records[0].end);
  EXPECT_LE(records[0].end, records[1].begin);
}

TEST(StepAbi, TellsProductsOfOwnKernelsApart) {
  RecordingDevice device;
  GradcContext context;
  context.device = &device;
  std::vector<LaunchKind> kinds;
  context.observe = [&](const LaunchRecord &record) { kinds.push_back(record.kind); };
  GradcLaunch product = launchNamed("product"), other = launchNamed("other");
  product.isProduct = 1;
  gradc_launch(&context, &product);
  gradc_launch(&context, &other);
  EXPECT_EQ(kinds, (std::vector<LaunchKind>{LaunchKind::gemm, LaunchKind::kernel}));
}

TEST(CpuDevice, ResolvesSpacesOffsetsAndIterations) {
  auto device = CpuDevice::create(2);
  ASSERT_TRUE(device.ok());
  float constants[] = {0, 100};
  ASSERT_TRUE((*device)->allocate({1024, 1024, constants, sizeof(constants)}).ok());
  float inputs[] = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE((*device)->write(GRADC_STATE, 64, inputs, sizeof(inputs)).ok());
  // out[task] = in[task] + constant; `in` moves by two floats an iteration.
  GradcKernelFn add = [](void *const *buffers, int64_t, int64_t task) {
    static_cast<float *>(buffers[0])[task] =
        static_cast<const float *>(buffers[1])[task] + *static_cast<const float *>(buffers[2]);
  };
  GradcBuffer buffers[] = {{GRADC_ARENA, 128, 0}, {GRADC_STATE, 64, 8}, {GRADC_CONSTANT, 4, 0}};
  GradcLaunch launch{"add", add, 1, 2, 3, buffers, 0, 0, 0};
  for (int64_t iteration = 0; iteration < 3; ++iteration) {
    ASSERT_TRUE((*device)->launch(launch, iteration).ok());
    float out[2];
    ASSERT_TRUE((*device)->read(GRADC_ARENA, 128, out, sizeof(out)).ok());
    EXPECT_EQ(out[0], 100 + inputs[2 * iteration]);
    EXPECT_EQ(out[1], 100 + inputs[2 * iteration + 1]);
  }
}

TEST(CpuDevice, RefusesRangesOutsideOfASpace) {
  auto device = CpuDevice::create(1);
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE((*device)->allocate({64, 64, nullptr, 0}).ok());
  float value = 1;
  EXPECT_TRUE((*device)->write(GRADC_STATE, 60, &value, 4).ok());
  EXPECT_EQ((*device)->write(GRADC_STATE, 61, &value, 4).code(), ExitCode::defect);
  EXPECT_EQ((*device)->read(GRADC_ARENA, -4, &value, 4).code(), ExitCode::defect);
  EXPECT_EQ((*device)->read(GRADC_CONSTANT, 0, &value, 4).code(), ExitCode::defect);
}

TEST(CpuDevice, RefusesMoreMemoryThanThereIs) {
  auto device = CpuDevice::create(1);
  ASSERT_TRUE(device.ok());
  Status status = (*device)->allocate({int64_t(1) << 49, int64_t(1) << 49, nullptr, 0});
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_NE(status.message().find("524288.00 GiB"), std::string::npos) << status.message();
}

} // namespace
} // namespace gradc::rt

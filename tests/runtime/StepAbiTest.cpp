// The functions that programs call: order, iterations, the first failure, the observer.
#include "runtime/StepAbi.h"

#include <vector>

#include <gtest/gtest.h>

extern "C" {
void gradc_launch(GradcContext *context, const GradcLaunch *launch);
void gradc_gemm(GradcContext *context, const GradcGemm *gemm);
void gradc_begin_iteration(GradcContext *context, int64_t iteration);
void gradc_record_event(GradcContext *context, const GradcStreamEvent *event);
void gradc_wait_event(GradcContext *context, const GradcStreamEvent *event);
}

namespace gradc::rt {
namespace {

/// Writes down what it is asked to do; fails a launch named "bad".
class RecordingDevice : public Device {
public:
  Status allocate(const SpaceSizes &) override { return Status(); }
  Status write(GradcSpace, int64_t, const void *, int64_t) override { return Status(); }
  Status read(GradcSpace, int64_t, void *, int64_t) override { return Status(); }
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
  Status recordEvent(const GradcStreamEvent &event) override {
    calls.push_back("record " + std::to_string(event.event) + std::to_string(event.stream));
    return Status();
  }
  Status waitEvent(const GradcStreamEvent &event) override {
    calls.push_back("wait " + std::to_string(event.event) + std::to_string(event.stream));
    return Status();
  }
  Status synchronize() override {
    ++synchronizations;
    return Status();
  }
  Status fillArena() override { return Status(); }
  Expected<int64_t> arenaHighWater() override { return int64_t(0); }

  std::vector<std::string> calls;
  int synchronizations = 0;
};

GradcLaunch launchNamed(const char *name) {
  return {name, nullptr, nullptr, 1, 1, 0, nullptr, 30, 40, 0};
}

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
  GradcStreamEvent recorded{5, 1}, waited{5, 0};
  gradc_record_event(&context, &recorded);
  gradc_wait_event(&context, &waited);
  gradc_launch(&context, &a);
  EXPECT_EQ(device.calls, (std::vector<std::string>{"a0", "g3", "record 51", "wait 50", "a3"}));
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
  GradcStreamEvent event{0, 1};
  gradc_record_event(&context, &event);
  gradc_wait_event(&context, &event);
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
  g.flops = 50, g.bytes = 60;
  gradc_launch(&context, &a);
  gradc_gemm(&context, &g);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(device.synchronizations, 2);
  EXPECT_EQ(records[0].kind, LaunchKind::kernel);
  EXPECT_EQ(records[0].flops, 30);
  EXPECT_EQ(records[0].bytes, 40);
  EXPECT_EQ(records[1].kind, LaunchKind::gemm);
  EXPECT_EQ(records[1].flops, 50);
  EXPECT_EQ(records[1].bytes, 60);
  EXPECT_LE(records[0].times.begin, records[0].times.end);
  EXPECT_LE(records[0].times.end, records[1].times.begin);
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

} // namespace
} // namespace gradc::rt

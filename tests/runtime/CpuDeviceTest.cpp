// The CPU device under the suite of every device.
#include "DeviceConformance.h"

#include "runtime/cpu/CpuDevice.h"

#include <gtest/gtest.h>

namespace gradc::rt {
namespace {

void add(void *const *buffers, int64_t, int64_t task) {
  static_cast<float *>(buffers[2])[task] =
      static_cast<const float *>(buffers[0])[task] + *static_cast<const float *>(buffers[1]);
}

template <int threads> Expected<std::unique_ptr<Device>> create() {
  static auto pool = ThreadPool::create(threads);
  GRADC_RETURN_IF_ERROR(pool.status());
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(**pool));
}

/// out = extent * in over the tasks of a part.
void scale(void *const *buffers, int64_t extent, int64_t task) {
  static_cast<float *>(buffers[1])[task] =
      static_cast<float>(extent) * static_cast<const float *>(buffers[0])[task];
}

TEST(CpuDevice, RunsEachPartOnItsBuffers) {
  auto device = create<2>();
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE((*device)->allocate({64, 64, nullptr, 0}).ok());
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE((*device)->write(GRADC_STATE, 0, numbers, sizeof(numbers)).ok());
  // Two tasks, none, three and one; the last on what is elsewhere.
  const GradcPart parts[] = {{10, 0}, {20, 2}, {30, 2}, {40, 5}};
  const GradcBuffer buffers[] = {{GRADC_STATE, 0, 0, 8},  {GRADC_ARENA, 0, 0, 8},
                                 {GRADC_STATE, 0, 0, 0},  {GRADC_ARENA, 0, 0, 0},
                                 {GRADC_STATE, 8, 0, 12}, {GRADC_ARENA, 8, 0, 12},
                                 {GRADC_STATE, 20, 0, 4}, {GRADC_STATE, 32, 0, 4}};
  GradcLaunch launch{"scale", scale, nullptr, 100, 6, 2, buffers, 0, 0, 0, 4, parts, {}};
  ASSERT_TRUE((*device)->launch(launch, 0).ok());
  float arena[5], state;
  ASSERT_TRUE((*device)->read(GRADC_ARENA, 0, arena, sizeof(arena)).ok());
  ASSERT_TRUE((*device)->read(GRADC_STATE, 32, &state, sizeof(state)).ok());
  EXPECT_EQ(std::vector<float>(arena, arena + 5), (std::vector<float>{10, 20, 90, 120, 150}));
  EXPECT_EQ(state, 240);
}

} // namespace

std::vector<DeviceUnderTest> devicesUnderTest() {
  return {{"OneThread", create<1>, add, nullptr}, {"TwoThreads", create<2>, add, nullptr}};
}

} // namespace gradc::rt

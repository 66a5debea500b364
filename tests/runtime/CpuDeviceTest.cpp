// The CPU device under the suite of every device.
#include "DeviceConformance.h"

#include "runtime/cpu/CpuDevice.h"

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

} // namespace

std::vector<DeviceUnderTest> devicesUnderTest() {
  return {{"OneThread", create<1>, add, nullptr}, {"TwoThreads", create<2>, add, nullptr}};
}

} // namespace gradc::rt

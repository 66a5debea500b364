// The emulated device under the suite of every device, and what it alone does.
#include "tests/emulator/LoadedModule.h"
#include "tests/runtime/DeviceConformance.h"

#include "runtime/emulator/EmulatedDevice.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradc::rt {
namespace {

/// Tasks of one thread.
const LoadedModule &addModule() {
  static const LoadedModule module(R"(
define ptx_kernel void @add(ptr addrspace(1) %in, ptr addrspace(1) %addend, ptr addrspace(1) %out,
                            i64 %extent) {
  %task = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %from = getelementptr float, ptr addrspace(1) %in, i32 %task
  %x = load float, ptr addrspace(1) %from, align 4
  %y = load float, ptr addrspace(1) %addend, align 4
  %sum = fadd float %x, %y
  %to = getelementptr float, ptr addrspace(1) %out, i32 %task
  store float %sum, ptr addrspace(1) %to, align 4
  ret void
}
)");
  return module;
}

const GradcGpuKernel *addKernel() {
  static const GradcGpuKernel kernel{1, 0, 2, addModule().kernel("add")};
  return &kernel;
}

Expected<std::unique_ptr<Device>> create() {
  static auto pool = ThreadPool::create(1);
  GRADC_RETURN_IF_ERROR(pool.status());
  return std::unique_ptr<Device>(std::make_unique<EmulatedDevice>(**pool));
}

TEST(EmulatedDevice, ReportsWhatAKernelDoesWrong) {
  auto device = create();
  ASSERT_TRUE(device.ok());
  expectOk((*device)->allocate({64, 64, nullptr, 0}));
  const GradcBuffer buffers[] = {
      {GRADC_STATE, 0, 0, 8}, {GRADC_STATE, 32, 0, 4}, {GRADC_ARENA, 0, 0, 8}};
  GradcLaunch launch{"add.7", nullptr, addKernel(), 1, 3, 3, buffers, 0, 0, 0};
  // The third task is outside of the buffer, though not of its space.
  expectReport((*device)->launch(launch, 0), {"emulated kernel add.7: block 2, thread 0",
                                              "behind buffer 0 (in), which has 8 bytes"});
  launch.tasks = 2;
  expectOk((*device)->launch(launch, 0));
}

/// But for what a measurement of the arena's use has filled it with.
TEST(EmulatedDevice, ForgetsTheArenaBetweenPrograms) {
  auto device = create();
  ASSERT_TRUE(device.ok());
  expectOk((*device)->allocate({64, 64, nullptr, 0}));
  float value = 1;
  for (GradcSpace space : {GRADC_STATE, GRADC_ARENA}) {
    expectOk((*device)->write(space, 8, &value, sizeof(value)));
    (*device)->forgetArena();
    float read = 0;
    expectOk((*device)->read(space, 8, &read, sizeof(read)));
    EXPECT_EQ(std::isnan(read), space == GRADC_ARENA) << read;
  }
  expectOk((*device)->fillArena());
  expectOk((*device)->write(GRADC_ARENA, 8, &value, sizeof(value)));
  (*device)->forgetArena();
  auto reached = (*device)->arenaHighWater();
  ASSERT_TRUE(reached.ok());
  EXPECT_EQ(*reached, 16);
}

TEST(EmulatedDevice, RefusesAKernelThatIsNotEmulated) {
  auto device = create();
  ASSERT_TRUE(device.ok());
  expectOk((*device)->allocate({64, 64, nullptr, 0}));
  GradcLaunch launch{"add", nullptr, nullptr, 1, 2, 0, nullptr, 0, 0, 0};
  expectReport((*device)->launch(launch, 0), {"kernel add cannot be emulated", "--emulate"});
}

} // namespace

std::vector<DeviceUnderTest> devicesUnderTest() {
  return {{"Emulated", create, nullptr, addKernel()}};
}

} // namespace gradc::rt

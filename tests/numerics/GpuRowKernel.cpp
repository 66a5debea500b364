// Emulated row programs.
#include "tests/numerics/GpuRowKernel.h"

#include "codegen/gpu/RowProgram.h"
#include "tests/numerics/Traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gradc::row {

static codegen::gpu::EmulatedKernels compile(codegen::gpu::GpuModule &module,
                                             const Program &program,
                                             const codegen::gpu::GpuTarget &target) {
  EXPECT_EQ(verify(program), "");
  codegen::gpu::emitRowProgram(module.get(), "kernel", program, target);
  return codegen::gpu::EmulatedKernels(module, target);
}

GpuRowKernel::GpuRowKernel(const Program &program, codegen::gpu::GpuTarget target)
    : program(program), schedule(codegen::gpu::scheduleRows(program, target)),
      kernels(compile(module, program, target)) {}

std::vector<Array> GpuRowKernel::run(int64_t extent, const std::vector<Array> &arrays,
                                     const std::vector<std::pair<int, int>> &sameMemory,
                                     rt::WarpOrder order) const {
  std::vector<GuardedBuffer> buffers;
  std::vector<rt::EmulatedBuffer> arguments;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    int64_t count = elementCount(program, static_cast<int32_t>(i), extent);
    buffers.emplace_back(program.buffers[i].dtype, count);
    buffers[i].set(arrays[i]);
    bool stored = std::ranges::count(program.effects, static_cast<int32_t>(i), &Effect::buffer) > 0;
    arguments.push_back({nullptr, count * byteSize(program.buffers[i].dtype), stored});
  }
  for (size_t i = 0; i < buffers.size(); ++i)
    arguments[i].address = buffers[i].data();
  for (auto [input, output] : sameMemory)
    arguments[output].address = arguments[input].address;
  kernels.run("kernel", arguments, extent, codegen::gpu::taskCount(program, schedule, extent),
              order);
  test::expectTraffic(kernels.traffic(),
                      codegen::rowWork(program, extent, codegen::gpu::reuseOf(program, schedule)));

  std::vector<Array> results;
  for (const GuardedBuffer &buffer : buffers) {
    EXPECT_TRUE(buffer.intact());
    results.push_back(buffer.get());
  }
  for (auto [input, output] : sameMemory)
    results[output] = results[input];
  return results;
}

} // namespace gradc::row

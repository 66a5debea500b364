// Launches in parts on the emulator: more parts than a warp has threads, of ragged sizes and none,
// each on its own buffers; and what the emulator says of a block that leaves its part.
#include "codegen/gpu/Parts.h"
#include "codegen/gpu/RowProgram.h"
#include "ir/row/Builder.h"
#include "runtime/Parts.h"
#include "tests/numerics/GpuRowKernel.h"
#include "tests/numerics/Traffic.h"

#include <gtest/gtest.h>

using namespace gradc;
using namespace gradc::row;
namespace gpu = gradc::codegen::gpu;

namespace {

/// {x, factor, out}: out = x * factor.
Program scaling() {
  Program program;
  program.flat = true;
  int32_t x = program.addBuffer({Dtype::f32, BufferKind::matrix});
  int32_t factor = program.addBuffer({Dtype::f32, BufferKind::scalar});
  int32_t out = program.addBuffer({Dtype::f32, BufferKind::matrix});
  NodeId load = program.addNode({.kind = NodeKind::load, .buffer = x});
  NodeId times = program.addNode({.kind = NodeKind::load, .buffer = factor});
  NodeId product = program.addNode({.kind = NodeKind::mul, .operands = {load, times, noNode}});
  program.effects.push_back({EffectKind::store, out, product});
  return program;
}

/// Parts of `extents` elements, each with buffers of its own, and their table.
class Parts {
public:
  explicit Parts(const std::vector<int64_t> &extents) : extents(extents) {
    gpu::emitRowProgram(module.get(), "kernel", program, {80});
    gpu::takeParts(module.get().lookupSymbol<mlir::LLVM::LLVMFuncOp>("kernel"));
    kernels = std::make_unique<gpu::EmulatedKernels>(module, gpu::GpuTarget{80});
    for (size_t i = 0; i < extents.size(); ++i) {
      list.push_back({extents[i], tasks});
      tasks += gpu::taskCount(program, gpu::scheduleRows(program, {80}), extents[i]);
      x.emplace_back(extents[i], static_cast<float>(i + 1));
      out.emplace_back(extents[i], -1.0f);
      factors.push_back(static_cast<float>(extents[i]));
    }
  }

  /// `lost`: bytes that part 1 is told it has less.
  rt::Status run(rt::WarpOrder order, int64_t lost = 0) {
    std::vector<rt::EmulatedPart> parts;
    std::vector<int64_t> addresses;
    for (size_t i = 0; i < list.size(); ++i) {
      int64_t bytes = extents[i] * 4;
      parts.push_back({list[i].firstTask,
                       {{x[i].data(), bytes - (i == 1 ? lost : 0), false},
                        {&factors[i], 4, false},
                        {out[i].data(), bytes, true}}});
      for (const rt::EmulatedBuffer &buffer : parts.back().buffers)
        addresses.push_back(reinterpret_cast<int64_t>(buffer.address));
    }
    GradcLaunch launch{};
    launch.bufferCount = 3;
    launch.partCount = static_cast<int64_t>(list.size());
    launch.parts = list.data();
    std::vector<int64_t> table = rt::partTable(launch, addresses);
    auto bytes = static_cast<int64_t>(table.size() * sizeof(int64_t));
    EXPECT_EQ(bytes, gpu::partTableBytes(launch.partCount, launch.bufferCount));
    return kernels->launch("kernel", {{table.data(), bytes, false}}, launch.partCount, tasks, order,
                           parts);
  }

  const Program program = scaling();
  std::vector<int64_t> extents;
  std::vector<std::vector<float>> x, out;
  std::vector<float> factors;
  std::vector<GradcPart> list;
  int64_t tasks = 0;
  gpu::GpuModule module;
  std::unique_ptr<gpu::EmulatedKernels> kernels;
};

TEST(GpuParts, EachTaskFindsItsPart) {
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < 70; ++i)
    extents.push_back(i % 7 == 3 ? 0 : 1 + i * 37 % 101);
  extents[40] = 9001; // several tasks
  Parts parts(extents);
  for (rt::WarpOrder order : {rt::WarpOrder::ascending, rt::WarpOrder::descending}) {
    rt::Status status = parts.run(order);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < extents.size(); ++i) {
      std::vector<float> want(extents[i], static_cast<float>((i + 1) * extents[i]));
      EXPECT_EQ(parts.out[i], want) << "part " << i;
      parts.out[i].assign(extents[i], -1.0f);
    }
  }
}

TEST(GpuParts, EachPartAccessesWhatItsKernelSays) {
  Parts parts({5000, 0, 17, 4096});
  ASSERT_TRUE(parts.run(rt::WarpOrder::alternating).ok());
  auto seen = parts.kernels->traffic();
  for (size_t i = 0; i < parts.extents.size(); ++i) {
    KernelWork stated = codegen::rowWork(parts.program, parts.extents[i], {});
    if (parts.extents[i] == 0)
      stated.buffers[1].read = 0; // no thread is there to load the factor
    auto first = seen.begin() + 1 + static_cast<int64_t>(3 * i); // behind the table
    test::expectTraffic({first, first + 3}, stated);
  }
}

TEST(GpuParts, ABlockMayAccessItsOwnPartAlone) {
  Parts parts({100, 200, 300});
  rt::Status status = parts.run(rt::WarpOrder::alternating, /*lost=*/4);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("block 1, "), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("buffer 0 of part 1, which has 796 bytes"), std::string::npos)
      << status.message();
}

} // namespace

// Async copies: a double-buffered pipeline over tiles, and what is reported when a part is missing.
#include "tests/emulator/LoadedModule.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

constexpr const char *blockBarrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";

/// Copies a tile of 64 x 4 floats at a time to shared memory, one tile ahead, and from there a
/// thread's neighbour's four floats to the output.
struct PipelineKernel {
  std::string wait = "call void @llvm.nvvm.cp.async.wait.group(i32 1)";
  std::string filled = blockBarrier;   ///< between the wait and the reads
  std::string consumed = blockBarrier; ///< between the reads and the next copy to the buffer
  std::string bytes = "16";            ///< of the source; the rest becomes zero
  std::string commit = "call void @llvm.nvvm.cp.async.commit.group()";
  std::string slot = "%thread"; ///< in the tile, of 16 bytes

  std::string text() const {
    auto copy = [&](const std::string &name, const std::string &tile) {
      return "  %parity." + name + " = and i32 " + tile + ", 1\n  %first." + name +
             " = mul i32 %parity." + name + ", 64\n  %slot." + name + " = add i32 %first." + name +
             ", " + slot + "\n  %to." + name +
             " = getelementptr [16 x i8], ptr addrspace(3) @tiles, i32 %slot." + name +
             "\n  %row." + name + " = mul i32 " + tile + ", 64\n  %index." + name +
             " = add i32 %row." + name + ", %thread\n  %from." + name +
             " = getelementptr [16 x i8], ptr addrspace(1) %in, i32 %index." + name +
             "\n  call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) %to." +
             name + ", ptr addrspace(1) %from." + name + ", i32 " + bytes + ")\n";
    };
    return R"(
@tiles = external addrspace(3) global [0 x i8], align 128
define ptx_kernel void @pipeline(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %neighbour = xor i32 %thread, 33
  %tiles = trunc i64 %extent to i32
)" + copy("start", "0") +
           "  " + commit + R"(
  br label %loop
loop:
  %tile = phi i32 [ 0, %0 ], [ %next, %rest ]
  %next = add i32 %tile, 1
  %more = icmp ult i32 %next, %tiles
  br i1 %more, label %ahead, label %ready
ahead:
)" + copy("ahead", "%next") +
           R"(  br label %ready
ready:
  )" + commit +
           "\n  " + wait + "\n  " + filled + R"(
  %parity = and i32 %tile, 1
  %first = mul i32 %parity, 64
  %slot = add i32 %first, %neighbour
  %address = getelementptr [16 x i8], ptr addrspace(3) @tiles, i32 %slot
  %x = load <4 x float>, ptr addrspace(3) %address, align 16
  %row = mul i32 %tile, 64
  %index = add i32 %row, %thread
  %to = getelementptr [16 x i8], ptr addrspace(1) %out, i32 %index
  store <4 x float> %x, ptr addrspace(1) %to, align 16
  )" + consumed +
           R"(
  br label %rest
rest:
  br i1 %more, label %loop, label %end
end:
  ret void
}
)";
  }

  rt::Status run(int64_t tiles, std::vector<float> &out,
                 rt::WarpOrder order = rt::WarpOrder::ascending) const {
    LoadedModule module(text());
    std::vector<float> in;
    for (int64_t i = 0; i < tiles * 256; ++i)
      in.push_back(static_cast<float>(i));
    out.assign(in.size(), -1);
    return Launch(module, "pipeline", 1, 64)
        .reads(in)
        .writes(out)
        .extent(tiles)
        .dynamicShared(2 * 64 * 16)
        .run(order);
  }
};

void expectNeighbours(const std::vector<float> &out, int copied) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t lane = i % 4, thread = i / 4 % 64, tile = i / 256;
    std::size_t source = (tile * 64 + (thread ^ 33)) * 4 + lane;
    EXPECT_EQ(out[i], static_cast<int>(lane) < copied ? static_cast<float>(source) : 0) << i;
  }
}

TEST(EmulatorAsyncCopy, Pipeline) {
  std::vector<float> out;
  for (int64_t tiles : {1, 2, 5})
    for (rt::WarpOrder order : {rt::WarpOrder::ascending, rt::WarpOrder::descending}) {
      expectOk(PipelineKernel().run(tiles, out, order));
      expectNeighbours(out, 4);
    }
}

TEST(EmulatorAsyncCopy, TheRestBecomesZero) {
  PipelineKernel kernel;
  std::vector<float> out;
  kernel.bytes = "12";
  expectOk(kernel.run(3, out));
  expectNeighbours(out, 3);
  kernel.bytes = "0";
  expectOk(kernel.run(3, out));
  expectNeighbours(out, 0);
  kernel.bytes = "20";
  expectReport(kernel.run(3, out), {"thread 0 ", "copies 20 of 16 bytes"});
}

TEST(EmulatorAsyncCopy, DeletedWait) {
  PipelineKernel kernel;
  kernel.wait = "";
  std::vector<float> out;
  expectReport(kernel.run(3, out),
               {"kernel pipeline: block 0, thread 0 ",
                "in flight: reads byte 528 of shared memory "
                "(tiles)",
                "an async copy of thread 33 is on its way", "%x = load <4 x float>"});
}

TEST(EmulatorAsyncCopy, WaitsForTooFewGroups) {
  PipelineKernel kernel;
  kernel.wait = "call void @llvm.nvvm.cp.async.wait.group(i32 2)";
  std::vector<float> out;
  expectReport(kernel.run(3, out), {"in flight: reads byte 528 of shared memory (tiles)"});
}

TEST(EmulatorAsyncCopy, DeletedCommit) {
  PipelineKernel kernel;
  kernel.commit = "";
  std::vector<float> out;
  expectReport(kernel.run(3, out), {"in flight: reads byte 528"});
}

TEST(EmulatorAsyncCopy, DeletedBarrierBeforeReading) {
  PipelineKernel kernel;
  kernel.filled = "";
  std::vector<float> out;
  // A thread waits for its own copies only; its neighbour has not yet begun.
  expectReport(kernel.run(3, out),
               {"thread 0 ", "uninitialised: reads byte 528 of shared memory (tiles)"});
}

TEST(EmulatorAsyncCopy, DeletedBarrierAfterReading) {
  PipelineKernel kernel;
  kernel.consumed = "";
  std::vector<float> out;
  expectOk(kernel.run(2, out)); // each buffer is filled once: nothing is missing
  // A warp ahead fills the buffer that another still reads.
  expectReport(kernel.run(3, out),
               {"thread 32 ",
                "in flight: reads byte 16 of shared memory (tiles), to which an async "
                "copy of thread 1 is on its way"});
}

TEST(EmulatorAsyncCopy, InFlightAtTheEnd) {
  PipelineKernel kernel;
  std::string text = kernel.text();
  text.replace(text.find("%more = icmp ult"), 16, "%more = icmp ule");
  // The last tile's successor is copied, and nobody waits for it.
  text.replace(text.find("br i1 %more, label %loop"), 24, "br i1 %most, label %loop");
  text.insert(text.find("  %more = "), "  %most = icmp ult i32 %next, %tiles\n");
  LoadedModule module(text);
  std::vector<float> in(512), out(256);
  expectReport(Launch(module, "pipeline", 1, 64)
                   .reads(in)
                   .writes(out)
                   .extent(1)
                   .dynamicShared(2 * 64 * 16)
                   .run(),
               {"ends with an async copy in flight"});
}

TEST(EmulatorAsyncCopy, TwoCopiesToOnePlace) {
  PipelineKernel kernel;
  kernel.slot = "0";
  std::vector<float> out;
  expectReport(kernel.run(1, out),
               {"thread 1 ", "race: writes byte 0 of shared memory (tiles) that thread 0 wrote"});
}

TEST(EmulatorAsyncCopy, SourceAndDestinationBounds) {
  LoadedModule module(PipelineKernel().text());
  std::vector<float> in(255), out(256);
  auto launch = [&](int64_t shared) {
    return Launch(module, "pipeline", 1, 64)
        .reads(in)
        .writes(out)
        .extent(1)
        .dynamicShared(shared)
        .run(rt::WarpOrder::ascending);
  };
  expectReport(launch(2048), {"thread 63 ", "out of bounds: ends 4 bytes behind buffer 0 (in)"});
  expectReport(launch(512),
               {"thread 32 ", "out of bounds: ends 16 bytes behind shared memory (tiles)"});
}

} // namespace
} // namespace gradc

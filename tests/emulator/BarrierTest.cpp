// Shared memory and barriers: a block's reduction, and what is reported when something is missing.
#include "tests/emulator/LoadedModule.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

constexpr const char *blockBarrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";

/// out[block] = the sum of the block's 96 numbers: each warp by shuffles, then the first warp over
/// the three of them.
struct SumKernel {
  std::string distance = "8", mask = "-1", exchangedMask = "-1";
  std::string barrier = blockBarrier;
  std::string partial = "%warp";                 ///< index of the shared float that a warp writes
  std::string isWriter = "icmp eq i32 %lane, 0"; ///< which lanes of a warp write it
  std::string early = "false";                   ///< which threads end before everything

  std::string text() const {
    std::string exchanges = "  br i1 " + early + ", label %end, label %begin\nbegin:\n";
    std::string sum = "%x";
    for (const std::string &by :
         {std::string("16"), distance, std::string("4"), std::string("2"), std::string("1")}) {
      std::string other = "%other" + by, next = "%sum" + by;
      exchanges += "  " + other + " = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 " +
                   (by == "2" ? exchangedMask : mask) + ", float " + sum + ", i32 " + by +
                   ", i32 31)\n  " + next + " = fadd float " + sum + ", " + other + "\n";
      sum = next;
    }
    return R"(
@partials = internal addrspace(3) global [3 x float] undef, align 4
define ptx_kernel void @sum(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) #0 {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %lane = and i32 %thread, 31
  %warp = lshr i32 %thread, 5
  %first = mul i32 %block, 96
  %index = add i32 %first, %thread
  %pin = getelementptr float, ptr addrspace(1) %in, i32 %index
  %x = load float, ptr addrspace(1) %pin, align 4
)" + exchanges +
           R"(
  %isWriter = )" +
           isWriter + R"(
  br i1 %isWriter, label %write, label %meet
write:
  %partial = getelementptr float, ptr addrspace(3) @partials, i32 )" +
           partial + R"(
  store float %sum1, ptr addrspace(3) %partial, align 4
  br label %meet
meet:
  )" + barrier +
           R"(
  %isLast = icmp eq i32 %thread, 0
  br i1 %isLast, label %fold, label %end
fold:
  %first.partial = load float, ptr addrspace(3) @partials, align 4
  %p1 = getelementptr float, ptr addrspace(3) @partials, i32 1
  %second.partial = load float, ptr addrspace(3) %p1, align 4
  %p2 = getelementptr float, ptr addrspace(3) @partials, i32 2
  %third.partial = load float, ptr addrspace(3) %p2, align 4
  %two = fadd float %first.partial, %second.partial
  %all = fadd float %two, %third.partial
  %pout = getelementptr float, ptr addrspace(1) %out, i32 %block
  store float %all, ptr addrspace(1) %pout, align 4
  br label %end
end:
  ret void
}
attributes #0 = { "nvvm.reqntid"="96" }
)";
  }

  rt::Status run(std::vector<float> &out, rt::WarpOrder order = rt::WarpOrder::alternating) const {
    LoadedModule module(text());
    std::vector<float> in;
    for (std::size_t i = 0; i < out.size() * 96; ++i)
      in.push_back(static_cast<float>(i % 7));
    return Launch(module, "sum", static_cast<int64_t>(out.size()), 96)
        .reads(in)
        .writes(out)
        .run(order);
  }
};

TEST(EmulatorBarrier, BlockSum) {
  for (rt::WarpOrder order :
       {rt::WarpOrder::ascending, rt::WarpOrder::descending, rt::WarpOrder::alternating}) {
    std::vector<float> out(4);
    expectOk(SumKernel().run(out, order));
    for (int block = 0; block < 4; ++block) {
      float expected = 0;
      for (int i = 0; i < 96; ++i)
        expected += static_cast<float>((block * 96 + i) % 7);
      EXPECT_EQ(out[block], expected); // small integers: exact in any order
    }
  }
}

TEST(EmulatorBarrier, DeletedBarrier) {
  SumKernel kernel;
  kernel.barrier = "";
  std::vector<float> out(2);
  // Warp 0 goes first and finds nothing there ...
  expectReport(kernel.run(out, rt::WarpOrder::ascending),
               {"kernel sum: block 0, thread 0 ",
                "uninitialised: reads byte 4 of shared memory "
                "(partials)",
                "%second.partial = load float"});
  // ... or last, and finds what no barrier has ordered.
  expectReport(kernel.run(out, rt::WarpOrder::descending),
               {"block 0, thread 0 ",
                "race: reads byte 4 of shared memory (partials) that thread 32 "
                "wrote with no barrier between"});
}

TEST(EmulatorBarrier, WrongMask) {
  SumKernel kernel;
  kernel.exchangedMask = "65535"; // lanes 16 to 31 call it too
  std::vector<float> out(1);
  expectReport(kernel.run(out, rt::WarpOrder::ascending),
               {"block 0, thread 31 (warp 0, lane 31): divergent: the lane is not in its own mask "
                "0x0000ffff: %other2 = call float @llvm.nvvm.shfl.sync.bfly.f32"});
}

TEST(EmulatorBarrier, EndedLanes) {
  SumKernel kernel;
  kernel.early = "%isLate";
  std::string text = kernel.text();
  // Lane 31 of each warp ends before the first exchange.
  text.insert(text.find("  br i1 %isLate"), "  %isLate = icmp eq i32 %lane, 31\n");
  LoadedModule module(text);
  std::vector<float> in(96), out(1);
  expectReport(Launch(module, "sum", 1, 96).reads(in).writes(out).run(rt::WarpOrder::ascending),
               {"thread 31 ", "ends while lanes of its warp wait for it at `%other16 = call"});
  expectReport(Launch(module, "sum", 1, 96).reads(in).writes(out).run(rt::WarpOrder::descending),
               {"divergent: the mask 0xffffffff has lanes that have ended or do not exist "
                "(0x80000000)"});
}

TEST(EmulatorBarrier, SharedOutOfBounds) {
  SumKernel kernel;
  kernel.partial = "%thread";
  std::vector<float> out(1);
  expectReport(kernel.run(out, rt::WarpOrder::ascending),
               {"block 0, thread 32 ", "out of bounds: ends 120 bytes behind shared memory "
                                       "(partials), which has 12 bytes"});
}

TEST(EmulatorBarrier, UninitialisedRead) {
  SumKernel kernel;
  kernel.isWriter = "icmp eq i32 %thread, 32";
  std::vector<float> out(1);
  expectReport(kernel.run(out),
               {"block 0, thread 0 ",
                "uninitialised: reads byte 0 of shared memory (partials), which the "
                "block has not written: %first.partial = load float"});
}

TEST(EmulatorBarrier, LanesThatWriteTheSame) {
  SumKernel kernel;
  kernel.isWriter = "icmp ult i32 %lane, 2";
  std::vector<float> out(1);
  expectReport(
      kernel.run(out, rt::WarpOrder::ascending),
      {"thread 1 ", "race: writes byte 0 of shared memory (partials) that thread 0 wrote"});
}

TEST(EmulatorBarrier, DivergentBarrierIsADeadlock) {
  // Lanes that write come to the barrier, the others wait for them in a shuffle.
  SumKernel kernel;
  kernel.barrier = R"(%phase = phi i32 [ 0, %begin ], [ 1, %write ]
  %isAtBarrier = icmp eq i32 %phase, 1
  br i1 %isAtBarrier, label %barrier, label %exchange
exchange:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  br label %barrier
barrier:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0))";
  std::vector<float> out(1);
  expectReport(kernel.run(out),
               {"kernel sum: block 0: deadlock, 96 of 96 threads have not ended and none can go on",
                "thread 0 at `call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)`",
                "thread 1 at `call void @llvm.nvvm.bar.warp.sync(i32 -1)`"});
}

TEST(EmulatorBarrier, LanesAtDifferentBarriers) {
  SumKernel kernel;
  kernel.barrier = R"(%phase = phi i32 [ 0, %begin ], [ 1, %write ]
  %isFirst = icmp eq i32 %phase, 1
  br i1 %isFirst, label %one, label %other
one:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %join
other:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %join
join:)";
  std::vector<float> out(1);
  expectReport(kernel.run(out), {"divergent barrier: this lane is at `call void",
                                 "all lanes of a warp must reach a barrier together"});
}

TEST(EmulatorBarrier, WrongNumberOfThreads) {
  LoadedModule module(SumKernel().text());
  std::vector<float> in(64), out(1);
  expectReport(Launch(module, "sum", 1, 64).reads(in).writes(out).run(),
               {"kernel sum: launched with 64 threads a block; it is made for 96"});
}

/// Two teams of two warps, each with a barrier of its own; a thread reads what the
/// thread `other` wrote.
std::string teamsKernel(const std::string &other, const std::string &count) {
  return R"(
@memory = internal addrspace(3) global [128 x i32] undef, align 4
define ptx_kernel void @teams(ptr addrspace(1) %out, i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr i32, ptr addrspace(3) @memory, i32 %thread
  store i32 %thread, ptr addrspace(3) %mine, align 4
  %team = lshr i32 %thread, 6
  %number = add i32 %team, 1
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %number, i32 )" +
         count + R"()
  %other = )" +
         other + R"(
  %theirs = getelementptr i32, ptr addrspace(3) @memory, i32 %other
  %x = load i32, ptr addrspace(3) %theirs, align 4
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %thread
  store i32 %x, ptr addrspace(1) %to, align 4
  ret void
}
)";
}

TEST(EmulatorBarrier, TeamsHaveBarriersOfTheirOwn) {
  LoadedModule module(teamsKernel("xor i32 %thread, 32", "64"));
  for (rt::WarpOrder order : {rt::WarpOrder::ascending, rt::WarpOrder::descending}) {
    std::vector<int32_t> out(128);
    expectOk(Launch(module, "teams", 1, 128).writes(out).run(order));
    for (int32_t thread = 0; thread < 128; ++thread)
      EXPECT_EQ(out[thread], thread ^ 32);
  }
}

TEST(EmulatorBarrier, ATeamsBarrierDoesNotOrderAnother) {
  LoadedModule module(teamsKernel("or i32 %thread, 64", "64"));
  std::vector<int32_t> out(128);
  expectReport(Launch(module, "teams", 1, 128).writes(out).run(rt::WarpOrder::descending),
               {"thread 63 ",
                "race: reads byte 508 of shared memory (memory) that thread 127 wrote "
                "with no barrier between"});
}

TEST(EmulatorBarrier, ABarrierForDifferentNumbersOfThreads) {
  std::string text = teamsKernel("xor i32 %thread, 32", "%count");
  text.insert(text.find("  call void @llvm.nvvm.barrier"),
              "  %isFirst = icmp ult i32 %thread, 32\n"
              "  %count = select i1 %isFirst, i32 64, i32 96\n");
  LoadedModule module(text);
  std::vector<int32_t> out(128);
  expectReport(Launch(module, "teams", 1, 128).writes(out).run(rt::WarpOrder::ascending),
               {"thread 32 ", "barrier 1 is for 96 threads here and for 64 elsewhere"});
}

TEST(EmulatorBarrier, ABarrierThatThereIsNot) {
  std::string text = teamsKernel("xor i32 %thread, 32", "64");
  text.replace(text.find("add i32 %team, 1"), 16, "add i32 %team, 15");
  LoadedModule module(text);
  std::vector<int32_t> out(128);
  expectReport(Launch(module, "teams", 1, 128).writes(out).run(),
               {"thread 64 ", "barrier 16: expected 0 to 15"});
}

TEST(EmulatorBarrier, ATeamThatIsTooSmall) {
  LoadedModule module(teamsKernel("xor i32 %thread, 32", "96"));
  std::vector<int32_t> out(128);
  expectReport(Launch(module, "teams", 1, 128).writes(out).run(),
               {"deadlock, 128 of 128 threads have not ended"});
}

} // namespace
} // namespace gradc

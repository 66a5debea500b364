// Accesses whose memory shows only when they run, ranges of bytes, and accesses of single bytes.
#include "tests/emulator/LoadedModule.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

constexpr const char *blockBarrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";

/// Threads write numbers to shared memory, then read `address`, a generic pointer.
std::string genericKernel(const std::string &address) {
  return R"(
@numbers = internal addrspace(3) global [64 x i32] undef, align 4
define ptx_kernel void @generic(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr i32, ptr addrspace(3) @numbers, i32 %thread
  store i32 %thread, ptr addrspace(3) %mine, align 4
  )" + std::string(blockBarrier) +
         R"(
  %other = xor i32 %thread, 63
  %ps = getelementptr i32, ptr addrspace(3) @numbers, i32 %other
  %pg = getelementptr i32, ptr addrspace(1) %in, i32 %thread
  %shared = addrspacecast ptr addrspace(3) %ps to ptr
  %global = addrspacecast ptr addrspace(1) %pg to ptr
  %bit = and i32 %thread, 1
  %odd = icmp eq i32 %bit, 1
  %behind = getelementptr i8, ptr %global, i64 256
  %chosen = )" +
         address + R"(
  %x = load i32, ptr %chosen, align 4
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %thread
  store i32 %x, ptr addrspace(1) %to, align 4
  ret void
}
)";
}

rt::Status runGeneric(const std::string &address, std::vector<int32_t> &out) {
  LoadedModule module(genericKernel(address));
  std::vector<int32_t> in;
  for (int32_t i = 0; i < 64; ++i)
    in.push_back(1000 + i);
  out.assign(64, -1);
  return Launch(module, "generic", 1, 64).reads(in).writes(out).run(rt::WarpOrder::ascending);
}

TEST(EmulatorPointer, SharedOrGlobalByTheAddress) {
  std::vector<int32_t> out;
  expectOk(runGeneric("select i1 %odd, ptr %shared, ptr %global", out));
  for (int32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i % 2 ? i ^ 63 : 1000 + i);
  expectReport(runGeneric("select i1 %odd, ptr %shared, ptr %behind", out),
               {"thread 0 ", "ends 4 bytes behind buffer 0 (in)", "%x = load i32, ptr %chosen"});
}

TEST(EmulatorPointer, GenericPointersThatLeadBack) {
  std::vector<int32_t> out;
  expectOk(runGeneric("getelementptr i32, ptr %shared, i32 0", out));
  for (int32_t i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i ^ 63);
  expectReport(runGeneric("getelementptr i32, ptr %shared, i32 1", out),
               {"thread 0 ",
                "out of bounds: ends 4 bytes behind shared memory (numbers), which has "
                "256 bytes"});
  expectReport(runGeneric("getelementptr i32, ptr %global, i32 1", out),
               {"thread 63 ", "out of bounds: ends 4 bytes behind buffer 0 (in)"});
}

/// One thread copies `extent` bytes to shared memory and on, by memcpy.
constexpr const char *rangeKernel = R"(
@bytes = internal addrspace(3) global [64 x i8] undef, align 4
define ptx_kernel void @range(ptr addrspace(1) %in, ptr addrspace(1) %out, i64 %extent) {
  call void @llvm.memset.p3.i64(ptr addrspace(3) @bytes, i8 7, i64 8, i1 false)
  %rest = getelementptr i8, ptr addrspace(3) @bytes, i64 8
  call void @llvm.memcpy.p3.p1.i64(ptr addrspace(3) %rest, ptr addrspace(1) %in, i64 %extent,
                                   i1 false)
  %all = add i64 %extent, 8
  call void @llvm.memcpy.p1.p3.i64(ptr addrspace(1) %out, ptr addrspace(3) @bytes, i64 %all,
                                   i1 false)
  ret void
}
)";

TEST(EmulatorPointer, Ranges) {
  LoadedModule module(rangeKernel);
  std::vector<uint8_t> in, out(65, 255);
  for (uint8_t i = 0; i < 57; ++i)
    in.push_back(i);
  auto run = [&](int64_t extent) {
    return Launch(module, "range", 1, 1).reads(in).writes(out).extent(extent).run();
  };
  expectOk(run(56));
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[i], i < 8 ? 7 : i - 8);
  EXPECT_EQ(out[64], 255);
  expectOk(run(0));
  expectReport(run(57), {"out of bounds: ends 1 bytes behind shared memory (bytes)",
                         "call void @llvm.memcpy.p3.p1"});
  expectReport(run(58), {"out of bounds: ends 1 bytes behind buffer 0 (in)"});
}

/// Each thread writes `stores` to its own element of the type, neighbours in one word of memory.
std::string narrowKernel(const std::string &type, const std::string &index) {
  return "@elements = internal addrspace(3) global [64 x " + type + R"(] undef, align 4
define ptx_kernel void @narrow(ptr addrspace(1) %out, i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %value = trunc i32 %thread to )" +
         type + R"(
  %mine = getelementptr )" +
         type + ", ptr addrspace(3) @elements, i32 " + index + R"(
  store )" +
         type + R"( %value, ptr addrspace(3) %mine
  %x = load )" +
         type + R"(, ptr addrspace(3) %mine
  %to = getelementptr )" +
         type + R"(, ptr addrspace(1) %out, i32 %thread
  store )" +
         type + R"( %x, ptr addrspace(1) %to
  ret void
}
)";
}

TEST(EmulatorPointer, NeighboursInAWordAreNoRace) {
  for (const std::string &type : {std::string("i8"), std::string("i16")}) {
    LoadedModule module(narrowKernel(type, "%thread"));
    std::vector<uint8_t> bytes(64);
    std::vector<uint16_t> halves(64);
    Launch launch(module, "narrow", 1, 64);
    expectOk((type == "i8" ? launch.writes(bytes) : launch.writes(halves)).run());
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(type == "i8" ? bytes[i] : halves[i], i);
  }
}

TEST(EmulatorPointer, OneByteOfTwoThreadsIsARace) {
  std::string text = narrowKernel("i8", "%half");
  text.insert(text.find("  %value"), "  %half = lshr i32 %thread, 1\n");
  LoadedModule module(text);
  std::vector<uint8_t> out(64);
  expectReport(Launch(module, "narrow", 1, 64).writes(out).run(rt::WarpOrder::ascending),
               {"thread 1 ", "race: writes byte 0 of shared memory (elements) that thread 0 "});
}

TEST(EmulatorPointer, TheSameBitsAndReportsEveryTime) {
  LoadedModule module(genericKernel("select i1 %odd, ptr %shared, ptr %far"));
  std::vector<int32_t> in(64), out(64);
  auto message = [&] {
    return Launch(module, "generic", 2, 64).reads(in).writes(out).run().message();
  };
  std::string first = message();
  EXPECT_NE(first, "");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(message(), first);
}

} // namespace
} // namespace gradc

// Plain loads and stores of global memory: results, bounds, alignment, races between blocks.
#include "tests/emulator/LoadedModule.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

/// What a test changes of the kernel below.
struct AddKernel {
  std::string inside = "icmp ult i64 %i, %extent"; ///< whether a thread has an element
  std::string loaded = "%i";                       ///< its index in b
  std::string stored = "%i";                       ///< its index in out
  std::string type = "float";                      ///< of what it stores
  std::string alignment = "4";                     ///< of that store

  /// out[i] = a[i] + b[i], an element a thread.
  std::string text() const {
    return R"(
define ptx_kernel void @add(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out,
                            i64 %extent) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = mul i32 %block, %threads
  %number = add i32 %first, %thread
  %i = zext i32 %number to i64
  %next = add i64 %i, 1
  %before = sub i64 %i, 1
  %t = zext i32 %thread to i64
  %inside = )" +
           inside + R"(
  br i1 %inside, label %body, label %end
body:
  %pa = getelementptr float, ptr addrspace(1) %a, i64 %i
  %x = load float, ptr addrspace(1) %pa, align 4
  %pb = getelementptr float, ptr addrspace(1) %b, i64 )" +
           loaded + R"(
  %y = load float, ptr addrspace(1) %pb, align 4
  %sum = fadd float %x, %y
  %two = insertelement <2 x float> zeroinitializer, float %sum, i32 0
  %po = getelementptr float, ptr addrspace(1) %out, i64 )" +
           stored + R"(
  store )" +
           type + (type == "float" ? " %sum" : " %two") + R"(, ptr addrspace(1) %po, align )" +
           alignment +
           R"(
  br label %end
end:
  ret void
}
)";
  }

  /// On three blocks of 64 threads.
  rt::Status run(std::vector<float> &out, int64_t extent, std::size_t numbersOfB = 192) const {
    LoadedModule module(text());
    std::vector<float> a(192), b(numbersOfB, 0.5f);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(i);
    return Launch(module, "add", 3, 64).reads(a).reads(b).writes(out).extent(extent).run();
  }
};

TEST(EmulatorMemory, VectorAdd) {
  std::vector<float> out(192, -1);
  expectOk(AddKernel().run(out, 150));
  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i], i < 150 ? static_cast<float>(i) + 0.5f : -1);
}

TEST(EmulatorMemory, LoadBehindItsBuffer) {
  std::vector<float> out(192);
  expectReport(AddKernel().run(out, 192, 191),
               {"emulated kernel add: block 2, thread 63 (warp 1, lane 31): out of bounds: ends 4 "
                "bytes behind buffer 1 (b), which has 764 bytes: %y = load float"});
}

TEST(EmulatorMemory, MissingGuard) {
  std::vector<float> out(150);
  AddKernel kernel;
  kernel.inside = "icmp ule i64 %i, %extent";
  expectReport(kernel.run(out, 150),
               {"block 2, thread 22", "out of bounds", "buffer 2 (out)", "store float %sum"});
}

TEST(EmulatorMemory, StoreBeforeItsBuffer) {
  // The neighbour in memory is a buffer of the launch as well: the parameter tells which is meant.
  std::vector<float> out(192);
  AddKernel kernel;
  kernel.stored = "%before";
  expectReport(kernel.run(out, 192),
               {"block 0, thread 0", "out of bounds: begins 4 bytes before buffer 2 (out)"});
}

TEST(EmulatorMemory, Misaligned) {
  std::vector<float> out(256);
  AddKernel kernel;
  kernel.type = "<2 x float>";
  kernel.alignment = "8";
  expectReport(kernel.run(out, 192), {"block 0, thread 1 ",
                                      "misaligned: the address is 4 bytes "
                                      "past a multiple of 8",
                                      "store <2 x float> %two"});
}

TEST(EmulatorMemory, BlocksThatWriteTheSame) {
  std::vector<float> out(192);
  AddKernel kernel;
  kernel.stored = "%t";
  expectReport(kernel.run(out, 192), {"block 1, thread ", "race: writes byte ", "of buffer 2 (out)",
                                      "another block wrote", "blocks have no order"});
}

TEST(EmulatorMemory, ThreadsThatWriteTheSame) {
  std::vector<float> out(192);
  AddKernel kernel;
  kernel.stored = "0";
  expectReport(kernel.run(out, 192), {"block 0, thread 1 ", "race: writes byte 0 of buffer 2 (out)",
                                      "thread 0 wrote with no barrier between"});
}

TEST(EmulatorMemory, BlocksThatReadWhatOthersWrite) {
  // In place, with the neighbour's element: block 0 reads what block 1 will write.
  AddKernel kernel;
  kernel.loaded = "%next";
  LoadedModule module(kernel.text());
  std::vector<float> a(192), inPlace(193);
  rt::Status status =
      Launch(module, "add", 3, 64).reads(a).reads(inPlace).writes(inPlace).extent(192).run();
  expectReport(status, {"race: writes byte ", "of buffer 2 (out)", "read with no barrier between"});
  kernel.inside = "icmp eq i32 %thread, 63"; // now within a block nobody else writes it
  kernel.stored = "%next";
  kernel.loaded = "%i";
  LoadedModule last(kernel.text());
  expectOk(Launch(last, "add", 3, 64).reads(a).reads(inPlace).writes(inPlace).extent(192).run());
}

TEST(EmulatorMemory, WritesWhatIsOnlyRead) {
  LoadedModule module(AddKernel().text());
  std::vector<float> a(192), b(192), out(192);
  expectReport(Launch(module, "add", 3, 64).reads(a).reads(b).reads(out).extent(192).run(),
               {"writes buffer 2 (out), which the launch only reads"});
}

TEST(EmulatorMemory, WrongNumberOfBuffers) {
  LoadedModule module(AddKernel().text());
  std::vector<float> a(192);
  expectReport(Launch(module, "add", 3, 64).reads(a).extent(192).run(),
               {"kernel add: launched with 1 buffers; it takes 3"});
}

} // namespace
} // namespace gradc

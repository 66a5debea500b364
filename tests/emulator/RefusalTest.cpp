// What the emulator does not know is refused by name when a kernel is retargeted.
#include "tests/emulator/LoadedModule.h"

#include "llvm/IR/Intrinsics.h"

#include <gtest/gtest.h>

namespace gradc {
namespace {

std::string kernel(const std::string &body, const std::string &around = "") {
  return around + "\ndefine ptx_kernel void @odd(ptr addrspace(1) %in, i64 %extent) {\n  " + body +
         "\n  ret void\n}\n";
}

void expectRefusal(const std::string &text, const std::vector<std::string> &words) {
  std::string message = LoadedModule::refusal(text);
  for (const std::string &word : words)
    EXPECT_NE(message.find(word), std::string::npos) << "`" << word << "` is not in: " << message;
}

TEST(EmulatorRefusal, UnknownIntrinsic) {
  expectRefusal(
      kernel("%c = call i32 @llvm.nvvm.read.ptx.sreg.clock()"),
      {"kernel odd: the emulator does not know llvm.nvvm.read.ptx.sreg.clock: %c = call"});
  expectRefusal(kernel("%m = call i32 @llvm.nvvm.activemask()"), {"llvm.nvvm.activemask"});
  expectRefusal(kernel("call void @llvm.masked.store.v4f32.p1(<4 x float> zeroinitializer, ptr "
                       "addrspace(1) %in, i32 4, <4 x i1> splat (i1 true))"),
                {"does not know llvm.masked.store"});
}

TEST(EmulatorRefusal, InlineAssembly) {
  expectRefusal(kernel("call void asm sideeffect \"nanosleep.u32 5;\", \"\"()"),
                {"kernel odd: the emulator does not know inline assembly", "nanosleep.u32 5"});
}

TEST(EmulatorRefusal, Atomics) {
  expectRefusal(kernel("%o = atomicrmw fadd ptr addrspace(1) %in, float 1.0 monotonic"),
                {"atomic operations", "atomicrmw fadd"});
  expectRefusal(kernel("%o = load atomic i32, ptr addrspace(1) %in monotonic, align 4"),
                {"atomic loads"});
  expectRefusal(kernel("store atomic i32 1, ptr addrspace(1) %in monotonic, align 4"),
                {"atomic stores"});
}

TEST(EmulatorRefusal, CallsAndVariables) {
  expectRefusal(kernel("call void @helper()", "declare void @helper()"),
                {"calls of functions that were not inlined", "@helper"});
  expectRefusal(
      kernel("store i32 1, ptr addrspace(1) @count, align 4", "@count = addrspace(1) global i32 0"),
      {"variables of a module in global memory", "@count"});
}

TEST(EmulatorRefusal, OtherParameters) {
  expectRefusal("define ptx_kernel void @odd(ptr addrspace(1) %in) {\n  ret void\n}\n",
                {"kernel odd: expected the extent (i64) as its last parameter"});
  expectRefusal("define ptx_kernel void @odd(i32 %in, i64 %extent) {\n  ret void\n}\n",
                {"kernel odd: expected a pointer a buffer before the extent"});
}

TEST(EmulatorRefusal, KnowsNoOthersThanLlvm) {
  const char *known[] = {
#define GRADC_SCALAR(intrinsic, symbol) intrinsic,
#define GRADC_WARP(intrinsic, symbol, maskOperand) intrinsic,
#include "codegen/gpu/EmulatedIntrinsics.def"
#undef GRADC_SCALAR
#undef GRADC_WARP
  };
  for (const char *name : known)
    EXPECT_NE(llvm::Intrinsic::lookupIntrinsicID(std::string("llvm.nvvm.") + name),
              llvm::Intrinsic::not_intrinsic)
        << name;
}

} // namespace
} // namespace gradc

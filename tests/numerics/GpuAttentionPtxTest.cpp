// Attention's kernels as the CUDA toolkit's assembler takes them, where the toolkit is installed: a
// table of registers, shared memory and blocks a processor; no spills.
#include "codegen/gpu/Attention.h"
#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Processor.h"
#include "codegen/gpu/RegisterLimits.h"
#include "tests/numerics/AttentionData.h"
#include "tests/numerics/GpuModule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>

using namespace gradc::codegen;
using namespace gradc::codegen::gpu;
using gradc::row::Dtype;

namespace {

struct NamedSpec {
  std::string name;
  AttentionSpec spec;
};

/// Heads of a model, q, k and v being slices of one buffer.
AttentionSpec modelSpec(Dtype dtype, int64_t headDim, int64_t kvHeads) {
  AttentionSpec s = attention_test::shape(4, 1024, 12, kvHeads, headDim);
  s.dtype = dtype;
  int64_t token = (12 + 2 * kvHeads) * headDim;
  s.q = s.k = s.v = s.dq = s.dk = s.dv = {1024 * token, token, headDim};
  s.o = s.dO = AttentionSpec::contiguous(1024, 12, headDim);
  return s;
}

/// Of each kind of schedule the variants that take the most registers.
std::vector<NamedSpec> specs() {
  std::vector<NamedSpec> all;
  auto add = [&](const char *variant, Dtype dtype, int64_t headDim, int64_t kvHeads = 12) {
    all.push_back({std::string(gradc::row::name(dtype)) + "_" + std::to_string(headDim) + variant,
                   modelSpec(dtype, headDim, kvHeads)});
    return &all.back().spec;
  };
  add("", Dtype::bf16, 64);
  add("", Dtype::bf16, 128);
  add("_by_8_bytes", Dtype::bf16, 100);
  for (auto [dtype, headDim] :
       {std::pair{Dtype::bf16, 64}, {Dtype::bf16, 128}, {Dtype::bf16, 256}, {Dtype::f32, 128}}) {
    AttentionSpec *most = add("_masked_dropout", dtype, headDim, 4);
    most->window = 256;
    most->documents = true;
    most->dropout = 0.1;
  }
  return all;
}

/// Blocks that fit a processor at a time, by registers as well, which warps take in units of 256.
int64_t blocksOfProcessor(const KernelResources &kernel, int64_t shared, int64_t threads,
                          const GpuTarget &target) {
  int64_t ofThread = (kernel.registers + 7) / 8 * 8;
  return std::min(registersOfProcessor / (ofThread * threads),
                  residentBlocks(shared, threads, sharedBytesOfProcessor(target)));
}

TEST(GpuAttentionPtx, AssemblesWithoutSpills) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  for (const GpuTarget &target : testedTargets) {
    GpuModule module;
    struct Launch {
      int64_t sharedBytes, threads;
    };
    std::map<std::string, Launch> launches;
    for (const NamedSpec &named : specs()) {
      ASSERT_EQ(verifyForGpu(named.spec), "") << named.name;
      std::string forward = "forward_" + named.name, backward = "backward_" + named.name;
      launches[forward] = {
          sharedBytesOf(emitAttentionForward(module.get(), forward, named.spec, target,
                                             forwardOrder(named.spec).keyHeads)),
          forwardSchedule(named.spec).threads()};
      launches[backward] = {
          sharedBytesOf(emitAttentionBackward(module.get(), backward, named.spec, target,
                                              backwardOrder(named.spec).keyHeads)),
          keySchedule(named.spec).threads()};
    }
    auto cubin = assembleWithoutSpills(module.toPtx(target), target, ptxas);
    ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
    EXPECT_EQ(cubin->kernels.size(), launches.size());
    for (const KernelResources &kernel : cubin->kernels) {
      auto [bytes, threads] = launches[kernel.name];
      std::cout << target.name() << "  " << std::left << std::setw(34) << kernel.name << std::right
                << std::setw(4) << threads << " threads" << std::setw(4) << kernel.registers
                << " registers" << std::setw(7) << bytes << " bytes shared" << std::setw(3)
                << blocksOfProcessor(kernel, bytes, threads, target) << " blocks "
                << kernel.limit.value_or("") << "\n";
      EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes, 0)
          << kernel.name;
      EXPECT_LE(kernel.sharedBytes, staticSharedBytes) << kernel.name;
      EXPECT_LE(bytes + kernel.sharedBytes, mostSharedBytes) << kernel.name;
    }
  }
}

/// Attention that a limit of 128 registers makes spill, and a copy of it with its own limits.
TEST(GpuAttentionPtx, KernelsThatSpillAreAssembledWithOtherLimits) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  GpuTarget target{90};
  GpuModule module;
  AttentionSpec spec = modelSpec(Dtype::bf16, 64, 12);
  for (const char *name : {"kept", "spilled"})
    emitAttentionForward(module.get(), name, spec, target, forwardOrder(spec).keyHeads);
  std::string ptx = module.toPtx(target);
  llvm::StringRef own = ".maxnreg 168";
  size_t at = ptx.find(own, ptx.find(".entry spilled("));
  ASSERT_NE(at, std::string::npos);
  ptx.replace(at, own.size(), ".maxnreg 128");

  auto plain = assemblePtx(ptx, target, ptxas);
  ASSERT_TRUE(static_cast<bool>(plain)) << llvm::toString(plain.takeError());
  auto cubin = assembleWithoutSpills(ptx, target, ptxas);
  ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
  ASSERT_EQ(cubin->kernels.size(), 2u);
  auto named = [](const Cubin &of, const char *name) {
    return *std::ranges::find(of.kernels, name, &KernelResources::name);
  };
  EXPECT_GT(named(*plain, "spilled").spillStoreBytes, 0);
  EXPECT_EQ(named(*cubin, "spilled").spillStoreBytes, 0);
  EXPECT_TRUE(named(*cubin, "spilled").limit.has_value());
  EXPECT_EQ(named(*cubin, "kept").spillStoreBytes, 0);
  EXPECT_FALSE(named(*cubin, "kept").limit.has_value());
  EXPECT_EQ(named(*cubin, "kept").registers, named(*plain, "kept").registers);
}

TEST(GpuAttentionPtx, LimitsLeaveAsManyBlocksThenOneFewer) {
  // 65 536 registers: three blocks of 128 threads may have 170 each, two 255 (the most of a
  // thread).
  EXPECT_EQ(limitsToTry(128, 161),
            (std::vector<std::string>{".minnctapersm 3", ".maxnreg 168", ".maxnreg 160",
                                      ".maxnreg 152", ".maxnreg 144", ".maxnreg 136", "",
                                      ".minnctapersm 2", ".maxnreg 255", ".maxnreg 248",
                                      ".maxnreg 240", ".maxnreg 232", ".maxnreg 224"}));
  // One block is the fewest.
  EXPECT_EQ(limitsToTry(256, 255).front(), ".minnctapersm 1");
  EXPECT_EQ(limitsToTry(256, 255)[1], ".maxnreg 255");
  EXPECT_TRUE(limitsToTry(0, 40).empty());
}

} // namespace

// Attention's kernels as the CUDA toolkit's assembler takes them, where the toolkit is installed: a
// table of registers, shared memory and blocks a processor; no spills.
#include "codegen/gpu/Attention.h"
#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Cubin.h"
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

std::vector<NamedSpec> specs() {
  std::vector<NamedSpec> all;
  auto add = [&](const char *variant, Dtype dtype, int64_t headDim, int64_t kvHeads = 12) {
    all.push_back({std::string(gradc::row::name(dtype)) + "_" + std::to_string(headDim) + variant,
                   modelSpec(dtype, headDim, kvHeads)});
    return &all.back().spec;
  };
  for (int64_t headDim : {64, 128})
    add("", Dtype::bf16, headDim);
  add("", Dtype::f32, 128);
  add("_by_8_bytes", Dtype::bf16, 100); // of tiles that are not swizzled
  add("_dropout", Dtype::bf16, 64)->dropout = 0.1;
  for (int64_t headDim : {64, 128}) {
    AttentionSpec *masked = add("_masked", Dtype::bf16, headDim, 4);
    masked->window = 256;
    masked->documents = true;
  }
  return all;
}

/// Blocks that fit a processor at a time: by registers, which warps take in units of 256, by shared
/// memory, of which each block takes 1 KB more, and by threads.
int64_t blocksOfProcessor(const KernelResources &kernel, int64_t shared, int64_t threads,
                          const GpuTarget &target) {
  constexpr int64_t registers = 65536, mostThreads = 2048;
  int64_t memory = (target.capability == 90 ? 228 : 164) * 1024;
  int64_t ofThread = (kernel.registers + 7) / 8 * 8;
  return std::min(
      {registers / (ofThread * threads), memory / (shared + 1024), mostThreads / threads});
}

TEST(GpuAttentionPtx, AssemblesWithoutSpills) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  for (const GpuTarget &target : testedTargets) {
    GpuModule module;
    std::map<std::string, int64_t> shared;
    for (const NamedSpec &named : specs()) {
      ASSERT_EQ(verifyForGpu(named.spec), "") << named.name;
      std::string forward = "forward_" + named.name, backward = "backward_" + named.name;
      shared[forward] =
          sharedBytesOf(emitAttentionForward(module.get(), forward, named.spec, target));
      shared[backward] =
          sharedBytesOf(emitAttentionBackward(module.get(), backward, named.spec, target));
    }
    auto cubin = assemblePtx(module.toPtx(target), target, ptxas);
    ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
    EXPECT_EQ(cubin->kernels.size(), shared.size());
    for (const KernelResources &kernel : cubin->kernels) {
      constexpr int64_t threads = 128, mostShared = 99 * 1024; // of a block, on sm_86 and sm_89
      int64_t bytes = shared[kernel.name];
      std::cout << target.name() << "  " << std::left << std::setw(28) << kernel.name << std::right
                << std::setw(4) << kernel.registers << " registers" << std::setw(7) << bytes
                << " bytes shared" << std::setw(3)
                << blocksOfProcessor(kernel, bytes, threads, target) << " blocks\n";
      EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes, 0)
          << kernel.name;
      EXPECT_LE(bytes, mostShared) << kernel.name;
    }
  }
}

} // namespace

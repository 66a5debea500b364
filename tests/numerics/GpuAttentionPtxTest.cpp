// Attention's kernels as the CUDA toolkit's assembler takes them, where the toolkit is installed: a
// table of registers, shared memory and blocks a processor; no spills.
#include "codegen/gpu/Attention.h"
#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/Cubin.h"
#include "codegen/gpu/Processor.h"
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
  int64_t memory = target.capability == 90 ? sharedBytesOfH100 : sharedBytesOfA100;
  int64_t ofThread = (kernel.registers + 7) / 8 * 8;
  return std::min(registersOfProcessor / (ofThread * threads),
                  residentBlocks(shared, threads, memory));
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
    auto cubin = assemblePtx(module.toPtx(target), target, ptxas);
    ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
    EXPECT_EQ(cubin->kernels.size(), launches.size());
    for (const KernelResources &kernel : cubin->kernels) {
      auto [bytes, threads] = launches[kernel.name];
      std::cout << target.name() << "  " << std::left << std::setw(34) << kernel.name << std::right
                << std::setw(4) << threads << " threads" << std::setw(4) << kernel.registers
                << " registers" << std::setw(7) << bytes << " bytes shared" << std::setw(3)
                << blocksOfProcessor(kernel, bytes, threads, target) << " blocks\n";
      EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes + kernel.stackBytes, 0)
          << kernel.name;
      EXPECT_LE(bytes, mostSharedBytes) << kernel.name;
    }
  }
}

} // namespace

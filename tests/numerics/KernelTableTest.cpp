// The kernel table of whole steps: which kernels move more bytes, or compute more, than they must.
#include "codegen/KernelTable.h"
#include "tools/driver/Compile.h"

#include <gtest/gtest.h>

using namespace gradc;
using codegen::KernelUse;

namespace {

struct Case {
  const char *name, *model, *precision;
  int64_t microBatch, seq;
};

class KernelTable : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    CompileRequest request;
    request.model = std::string(GRADC_SOURCE_DIR) + "/" + GetParam().model;
    request.import.microBatch = GetParam().microBatch;
    request.import.seq = GetParam().seq;
    request.passes.precision = GetParam().precision;
    request.target = "cuda:sm_90";
    request.emulate = true;
    compiler = std::make_unique<Compiler>(request);
    Failure failure = compiler->plan();
    ASSERT_FALSE(failure) << failure.message;
    table = codegen::kernelTable(compiler->module());
  }

  std::unique_ptr<Compiler> compiler;
  std::vector<KernelUse> table;
};

bool isAbove(int64_t count, int64_t least) {
  constexpr double allowed = 1.1;
  return static_cast<double>(count) > allowed * static_cast<double>(least);
}

TEST_P(KernelTable, WhatDoesMoreThanItMustHasAReason) {
  int64_t launched = 0;
  for (const KernelUse &use : table) {
    SCOPED_TRACE(use.name);
    launched += use.launches;
    EXPECT_TRUE(use.isCounted);
    EXPECT_GE(use.bytes, use.leastBytes);
    EXPECT_GE(use.flops, use.leastFlops);
    if (!isAbove(use.bytes, use.leastBytes) && !isAbove(use.flops, use.leastFlops))
      continue;
    EXPECT_NE(use.reason, "");
    if (llvm::StringRef(use.name).starts_with("attention")) {
      EXPECT_FALSE(isAbove(use.bytes, use.leastBytes)) << use.bytes << " of " << use.leastBytes;
    }
    // docs/design/gpu.md says why they do.
    EXPECT_TRUE(llvm::StringRef(use.name).starts_with("attention"))
        << use.bytes << " bytes of " << use.leastBytes << ", " << use.flops << " FLOPs of "
        << use.leastFlops;
  }
  EXPECT_GT(launched, 0);
}

TEST_P(KernelTable, LayersAreAlike) {
  std::map<int64_t, int64_t> launches = codegen::launchesByLayer(compiler->module());
  int64_t all = 0, launched = 0;
  for (auto [layer, count] : launches)
    all += count;
  for (const KernelUse &use : table)
    launched += use.launches;
  EXPECT_EQ(all, launched);
  ASSERT_GT(launches.size(), 4u);
  for (auto [layer, count] : launches)
    if (layer > 0 && layer + 3 < static_cast<int64_t>(launches.size())) {
      EXPECT_EQ(count, launches[1]) << "layer " << layer;
    }
}

TEST_P(KernelTable, TheOptimizerIsOneLaunchAKernel) {
  for (const KernelUse &use : table) {
    if (!llvm::StringRef(use.name).starts_with("adamw") &&
        !llvm::StringRef(use.name).starts_with("square_sums"))
      continue;
    EXPECT_LE(use.launches, 1) << use.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, KernelTable,
    testing::Values(Case{"gpt2_fp32", "examples/gpt2-124m", "fp32", 1, 1024},
                    Case{"gpt2_bf16", "examples/gpt2-124m", "bf16", 4, 1024},
                    Case{"llama150m_fp32", "examples/llama-150m", "fp32", 1, 1024},
                    Case{"llama150m_bf16", "examples/llama-150m", "bf16", 4, 1024},
                    Case{"llama1b_bf16", "tests/frontend/configs/llama-3.2-1b.json", "bf16", 1,
                         2048}),
    [](const auto &info) { return info.param.name; });

} // namespace

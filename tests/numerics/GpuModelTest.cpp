// The GPU's kernels of whole training steps: what the models' exec programs
// launch, less products and attention. Each row program runs emulated and is
// compared with the CPU's kernel, from which it differs in the order of sums
// alone; all kernels together are assembled where there is ptxas.
#include "codegen/gpu/KernelFamilies.h"
#include "codegen/gpu/Ptx.h"
#include "codegen/gpu/RegisterLimits.h"
#include "ir/Cluster.h"
#include "tests/numerics/Elements.h"
#include "tests/numerics/GpuRowKernel.h"
#include "tools/driver/Compile.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace gradc;
using namespace gradc::row;
using codegen::gpu::GpuTarget;

namespace {

class GpuModel : public testing::TestWithParam<std::pair<const char *, const char *>> {
protected:
  /// The planned step of the parameter's model and precision; products and
  /// attention taken out.
  void SetUp() override {
    auto [model, precision] = GetParam();
    CompileRequest request;
    request.model = std::string(GRADC_SOURCE_DIR) + "/tests/goldens/" + model;
    request.import.microBatch = 2;
    request.import.seq = 24;
    request.import.documentMask = llvm::StringRef(model).contains("documents");
    request.passes.precision = precision;
    compiler = std::make_unique<Compiler>(request);
    Failure failure = compiler->plan();
    ASSERT_FALSE(failure) << failure.message;
    auto kernels = llvm::to_vector(compiler->module().getOps<exec::KernelOp>());
    for (exec::KernelOp kernel : kernels)
      if (mlir::isa<nn::MatmulOp, nn::AttentionOp, nn::AttentionGradOp>(operationOf(kernel)))
        kernel.erase();
  }

  static mlir::Operation *operationOf(exec::KernelOp kernel) {
    return &kernel.getBody().front().front();
  }

  std::unique_ptr<Compiler> compiler;
};

/// Sums good to a few units of f32; a number that a sum's last bit rounds the
/// other way, and what follows from it, by units of the narrowest type.
Bound boundOf(const Program &program) {
  double unit = 0;
  for (const Buffer &buffer : program.buffers)
    unit = std::max(unit, 2 * unitRoundoff(buffer.dtype));
  return {1e-5 + 4 * unit, 1e-5 + 4 * unit};
}

TEST_P(GpuModel, RowProgramsEqualTheCpus) {
  std::set<std::string> seen;
  for (exec::KernelOp kernel : compiler->module().getOps<exec::KernelOp>()) {
    auto fused = mlir::dyn_cast<nn::FusedOp>(operationOf(kernel));
    if (!fused)
      continue;
    Program program = nn::buildClusterProgram(fused, kernel.getRowStrides()).program;
    if (!seen.insert(print(program)).second)
      continue;
    SCOPED_TRACE(kernel.getSymName().str());
    int64_t extent = program.flat ? 5003 : 67;
    // Labels and seeds are 0 and 1.
    std::vector<Array> arrays = randomArrays(program, extent, seen.size(), 0.1, 1.9);
    GpuRowKernel gpu(program);
    RowKernel cpu(program, codegen::CpuTarget::host());
    ASSERT_TRUE(gpu && cpu);
    std::vector<Array> got = gpu.run(extent, arrays), want = cpu.run(extent, arrays);
    for (size_t i = 0; i < got.size(); ++i)
      expectClose(got[i], want[i], boundOf(program), "buffer " + std::to_string(i));
  }
  EXPECT_GE(seen.size(), 10u);
}

TEST_P(GpuModel, KernelsAssembleWithoutSpills) {
  for (exec::KernelOp kernel : compiler->module().getOps<exec::KernelOp>()) {
    auto geometry =
        codegen::gpu::GpuKernels(GpuTarget{90})
            .geometry(operationOf(kernel), {kernel.getRowStrides(), kernel.getAlignments()});
    ASSERT_TRUE(succeeded(geometry)) << kernel.getSymName().str();
    EXPECT_GT(geometry->tasks, 0) << kernel.getSymName().str();
  }
  GpuTarget target{90};
  auto kernels = codegen::gpu::emitKernels(compiler->module(), target);
  ASSERT_TRUE(succeeded(kernels));
  llvm::LLVMContext context;
  auto lowered = codegen::gpu::lowerToNvptxIr(**kernels, target, context);
  ASSERT_TRUE(static_cast<bool>(lowered)) << llvm::toString(lowered.takeError());
  auto ptx = codegen::gpu::emitPtx(**lowered, target);
  ASSERT_TRUE(static_cast<bool>(ptx)) << llvm::toString(ptx.takeError());
  for (exec::KernelOp kernel : compiler->module().getOps<exec::KernelOp>())
    EXPECT_NE(ptx->find(".entry " + kernel.getSymName().str() + "("), std::string::npos);
  std::string ptxas = codegen::gpu::findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  auto cubin = codegen::gpu::assembleWithoutSpills(*ptx, target, ptxas);
  ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
  for (const codegen::gpu::KernelResources &kernel : cubin->kernels)
    EXPECT_EQ(kernel.spillStoreBytes + kernel.spillLoadBytes, 0) << kernel.name;
}

INSTANTIATE_TEST_SUITE_P(
    Goldens, GpuModel,
    testing::Values(std::pair("tiny-gpt2", "fp32"), std::pair("tiny-gpt2", "bf16"),
                    std::pair("tiny-gpt2", "fp8"), std::pair("tiny-llama", "fp32"),
                    std::pair("tiny-llama", "fp16"), std::pair("tiny-llama", "fp8"),
                    std::pair("tiny-mistral-documents", "bf16")),
    [](const auto &info) {
      std::string name = std::string(info.param.first) + "_" + info.param.second;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

} // namespace

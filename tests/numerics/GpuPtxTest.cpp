// Row programs as PTX for each architecture, and as the CUDA toolkit's assembler takes it where the
// toolkit is installed: no spills, and a table of what each kernel needs.
#include "codegen/gpu/Cubin.h"
#include "codegen/gpu/Documents.h"
#include "codegen/gpu/Embedding.h"
#include "codegen/gpu/Rope.h"
#include "codegen/gpu/RowProgram.h"
#include "codegen/gpu/Sums.h"
#include "tests/numerics/GpuModule.h"
#include "tests/numerics/SamplePrograms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iomanip>
#include <iostream>

using namespace gradc::row;
using namespace gradc::codegen::gpu;
using gradc::codegen::RopeSpec;

namespace {

struct NamedProgram {
  std::string name;
  Program program;
};

/// What models' steps are made of, at their sizes, and sizes that no vector divides.
std::vector<NamedProgram> samplePrograms() {
  std::vector<NamedProgram> all;
  auto add = [&](const std::string &name, const Program &program) {
    all.push_back({name + "_" + std::to_string(program.columns), program});
  };
  for (auto [suffix, dtype] : {std::pair("_f32", Dtype::f32), std::pair("_bf16", Dtype::bf16)}) {
    for (int64_t columns : {97, 768, 1600, 4096, 8192}) {
      add(std::string("layernorm") + suffix, samples::residualLayerNorm(columns, dtype));
      add(std::string("layernorm_backward") + suffix, samples::layerNormBackward(columns, dtype));
    }
    for (int64_t columns : {97, 3072}) {
      add(std::string("gelu") + suffix, samples::biasGeluTanh(columns, dtype));
      add(std::string("gelu_backward") + suffix, samples::biasGeluTanhBackward(columns, dtype));
    }
    for (int64_t columns : {1024, 50257, 128256}) {
      add(std::string("softmax") + suffix, samples::causalSoftmax(columns, 0.125, dtype));
      add(std::string("cross_entropy") + suffix, samples::crossEntropy(columns, 1, dtype));
    }
    Program padded = samples::crossEntropy(50257, 1, dtype);
    for (Buffer &buffer : padded.buffers)
      if (buffer.kind == BufferKind::matrix)
        buffer.rowStride = 50264;
    add(std::string("cross_entropy_padded") + suffix, padded);
    add(std::string("swiglu") + suffix, samples::swiGlu(dtype));
  }
  add("gelu_erf", samples::biasGeluErf(3072));
  add("gelu_erf_backward", samples::biasGeluErfBackward(3072));
  add("adamw", samples::adamw(/*copy=*/false));
  add("adamw_copy", samples::adamw(/*copy=*/true));
  add("dropout", samples::dropout(768, 0.1));
  add("dropout_flat", samples::dropout(0, 0.1));
  return all;
}

std::string samplesAsPtx(const GpuTarget &target) {
  GpuModule module;
  for (const NamedProgram &sample : samplePrograms()) {
    EXPECT_EQ(verify(sample.program), "") << sample.name;
    emitRowProgram(module.get(), sample.name, sample.program, target);
  }
  return module.toPtx(target);
}

/// The kernels that are not row programs, at models' sizes.
std::string familiesAsPtx(const GpuTarget &target) {
  GpuModule module;
  for (int64_t columns : {97, 768})
    emitFoldRows(module.get(), "fold_rows_" + std::to_string(columns), columns, target);
  emitChunkSquareSums(module.get(), "square_sums", target);
  emitFoldAll(module.get(), "sum", target);
  for (Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    std::string suffix = std::string("_") + name(dtype);
    for (int64_t channels : {97, 768}) {
      std::string sized = suffix + "_" + std::to_string(channels);
      emitEmbedding(module.get(), "embedding" + sized, {50257, channels, dtype, dtype}, target);
      emitEmbeddingGradient(module.get(), "embedding_gradient" + sized,
                            {50257, channels, /*accumulate=*/channels == 97, dtype}, target);
    }
    RopeSpec rope{1024, 12, 64, false, {1024 * 768, 768, 64}, {1024 * 768, 768, 64}, dtype, true};
    emitRope(module.get(), "rope" + suffix, rope, target);
  }
  emitDocuments(module.get(), "documents", {1024, 50256}, target);
  return module.toPtx(target);
}

/// Prints what each kernel needs and checks what no kernel may.
void checkResources(const Cubin &cubin, const GpuTarget &target) {
  EXPECT_EQ(cubin.image.substr(0, 4), "\x7f"
                                      "ELF");
  for (const KernelResources &kernel : cubin.kernels) {
    std::cout << target.name() << "  " << std::left << std::setw(32) << kernel.name << std::right
              << std::setw(4) << kernel.registers << " registers" << std::setw(7)
              << kernel.sharedBytes << " bytes shared\n";
    EXPECT_EQ(kernel.spillStoreBytes, 0) << kernel.name;
    EXPECT_EQ(kernel.spillLoadBytes, 0) << kernel.name;
    EXPECT_EQ(kernel.stackBytes, 0) << kernel.name;
    EXPECT_LE(kernel.sharedBytes, 48 * 1024) << kernel.name;
  }
}

TEST(GpuPtx, EverySampleIsAKernel) {
  for (const GpuTarget &target : testedTargets) {
    std::string ptx = samplesAsPtx(target);
    EXPECT_NE(ptx.find(".target " + target.name()), std::string::npos);
    for (const NamedProgram &sample : samplePrograms())
      EXPECT_NE(ptx.find(".entry " + sample.name + "("), std::string::npos) << sample.name;
    EXPECT_EQ(ptx.find(".ftz"), std::string::npos); // the CPU's bits have denormal numbers
  }
}

TEST(GpuPtx, SamplesAssembleWithoutSpills) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  for (const GpuTarget &target : testedTargets) {
    auto cubin = assemblePtx(samplesAsPtx(target), target, ptxas);
    ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
    checkResources(*cubin, target);
    EXPECT_EQ(cubin->kernels.size(), samplePrograms().size());
    for (const NamedProgram &sample : samplePrograms()) {
      auto kernel = std::ranges::find(cubin->kernels, sample.name, &KernelResources::name);
      ASSERT_NE(kernel, cubin->kernels.end()) << sample.name;
      constexpr int64_t registersOfAProcessor = 65536;
      EXPECT_LE(kernel->registers * scheduleRows(sample.program, target).threads(),
                registersOfAProcessor)
          << sample.name;
    }
  }
}

TEST(GpuPtx, FamiliesAssembleWithoutSpills) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine: the PTX is not assembled";
  for (const GpuTarget &target : testedTargets) {
    auto cubin = assemblePtx(familiesAsPtx(target), target, ptxas);
    ASSERT_TRUE(static_cast<bool>(cubin)) << llvm::toString(cubin.takeError());
    checkResources(*cubin, target);
    EXPECT_EQ(cubin->kernels.size(), 15u);
  }
}

TEST(GpuPtx, SaysWhatTheAssemblerComplainsOf) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas on this machine";
  auto cubin = assemblePtx(".version 8.0\n.target sm_80\nnonsense\n", GpuTarget{80}, ptxas);
  ASSERT_FALSE(static_cast<bool>(cubin));
  std::string message = llvm::toString(cubin.takeError());
  EXPECT_NE(message.find("does not assemble the kernels"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(GpuPtx, ReadsWhatTheAssemblerSays) {
  auto kernels =
      parseResources("ptxas info    : 0 bytes gmem\n"
                     "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
                     "ptxas info    : Function properties for first\n"
                     "    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
                     "ptxas info    : Used 40 registers, used 1 barriers, 64 bytes smem, 400 "
                     "bytes cmem[0]\n"
                     "ptxas info    : Compiling entry function 'second' for 'sm_80'\n"
                     "ptxas info    : Used 7 registers, 380 bytes cmem[0]\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[0].registers, 40);
  EXPECT_EQ(kernels[0].stackBytes, 16);
  EXPECT_EQ(kernels[0].spillStoreBytes, 8);
  EXPECT_EQ(kernels[0].spillLoadBytes, 12);
  EXPECT_EQ(kernels[0].sharedBytes, 64);
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].registers, 7);
  EXPECT_EQ(kernels[1].sharedBytes, 0);
}

TEST(GpuPtx, KnowsItsArchitectures) {
  EXPECT_EQ(GpuTarget::parse("sm_80")->name(), "sm_80");
  EXPECT_EQ(GpuTarget::parse("sm_90")->capability, 90);
  EXPECT_FALSE(GpuTarget::parse("sm_20"));
  EXPECT_FALSE(GpuTarget::parse("hopper"));
}

} // namespace

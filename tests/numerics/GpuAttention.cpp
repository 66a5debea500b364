// See GpuAttention.h.
#include "tests/numerics/GpuAttention.h"

#include "tests/numerics/Traffic.h"

#include <gtest/gtest.h>

namespace gradc::codegen::gpu {

using namespace attention_test;
using row::Dtype;

GpuAttention::GpuAttention(const AttentionSpec &spec,
                           llvm::function_ref<void(mlir::ModuleOp)> change)
    : GpuAttention(spec, spec.batch * spec.kvHeads, change) {}
GpuAttention::GpuAttention(const AttentionSpec &spec, int64_t keyHeads)
    : GpuAttention(spec, keyHeads, {}) {}

GpuAttention::GpuAttention(const AttentionSpec &spec, int64_t keyHeads,
                           llvm::function_ref<void(mlir::ModuleOp)> change)
    : spec(spec) {
  EXPECT_EQ(verifyForGpu(spec), "");
  GpuModule module;
  emitAttentionForward(module.get(), "forward", spec, GpuTarget{80}, keyHeads);
  emitAttentionBackward(module.get(), "backward", spec, GpuTarget{80}, keyHeads);
  if (change)
    change(module.get());
  kernels = std::make_unique<EmulatedKernels>(module, GpuTarget{80});
}

static std::vector<rt::EmulatedBuffer> buffersOf(const Arguments &arguments) {
  std::vector<rt::EmulatedBuffer> buffers;
  for (const Arguments::Place &place : arguments.places)
    buffers.push_back({place.address, place.bytes, place.writable});
  return buffers;
}

rt::Status GpuAttention::runForward(Data &x, rt::WarpOrder order) const {
  rt::Status status;
  callForward(x, [&](const Arguments &arguments) {
    status =
        kernels->launch("forward", buffersOf(arguments), 0, attentionForwardBlocks(spec), order);
  });
  return status;
}

rt::Status GpuAttention::runBackward(Data &x, rt::WarpOrder order) const {
  rt::Status status;
  callBackward(x, [&](const Arguments &arguments) {
    status =
        kernels->launch("backward", buffersOf(arguments), 0, attentionBackwardBlocks(spec), order);
  });
  return status;
}

void GpuAttention::run(Data &x, rt::WarpOrder order) const {
  rt::Status forward = runForward(x, order), backward = runBackward(x, order);
  EXPECT_TRUE(forward.ok()) << forward.message();
  EXPECT_TRUE(backward.ok()) << backward.message();
}

Data gpuData(const AttentionSpec &spec, bool packed) {
  constexpr int64_t gap = 8; // 16 bytes of narrow elements
  return Data(spec, packed, /*seed=*/1, packed ? gap : 0);
}

namespace {

/// By norm. f32 as on the CPU. Weights of narrow types are rounded before they are multiplied, and
/// a result is rounded once more: each a unit of at most half the dtype's.
double boundOf(Dtype dtype, double ofF32) {
  return dtype == Dtype::bf16 ? 4e-3 : dtype == Dtype::f16 ? 5e-4 : ofF32;
}

/// What is asked of the cache is stated to the byte; of memory, no more than that.
void expectBytes(const std::vector<rt::EmulatedTraffic> &seen, const KernelWork &work,
                 const std::vector<BufferTraffic> &accesses) {
  KernelWork asked;
  asked.buffers = accesses;
  test::expectTraffic(seen, asked);
  test::expectTraffic(seen, work);
}

} // namespace

void checkOnGpu(const Data &data) {
  const AttentionSpec &spec = data.spec;
  SCOPED_TRACE(testing::Message() << "B" << spec.batch << " T" << spec.seq << " H" << spec.heads
                                  << "/" << spec.kvHeads << " D" << spec.headDim
                                  << (spec.causal ? " causal" : "") << " W" << spec.window
                                  << (spec.documents ? " documents" : "") << " "
                                  << row::name(spec.dtype));
  GpuAttention kernels(spec);
  ASSERT_TRUE(kernels);
  Data run = data;
  rt::Status forward = kernels.runForward(run, rt::WarpOrder::ascending);
  EXPECT_TRUE(forward.ok()) << forward.message();
  expectBytes(kernels.traffic(), attentionForwardWork(spec), attentionForwardAccesses(spec));
  rt::Status backward = kernels.runBackward(run, rt::WarpOrder::ascending);
  EXPECT_TRUE(backward.ok()) << backward.message();
  expectBytes(kernels.traffic(), attentionBackwardWork(spec), attentionBackwardAccesses(spec));
  Reference want = data.want();
  Reference gradients = spec.narrow() ? data.want(run.o.data()) : want;
  auto expect = [&](const std::vector<float> &got, const std::vector<double> &want, double ofF32,
                    const char *what) {
    double error = distance(got, want);
    EXPECT_LE(error, boundOf(spec.dtype, ofF32)) << what;
    testing::Test::RecordProperty(what, std::to_string(error));
  };
  expect(run.o, want.o, 1e-6, "o");
  EXPECT_LE(distance(run.lse, want.lse), 1e-6);
  expect(run.gradients.gather(spec, 0), gradients.dq, 3e-6, "dq");
  expect(run.gradients.gather(spec, 1), gradients.dk, 3e-6, "dk");
  expect(run.gradients.gather(spec, 2), gradients.dv, 1e-6, "dv");
  EXPECT_TRUE(sameBits(run.in.memory, data.in.memory));
  run.gradients.expectGapsIntact();

  Data again = data;
  kernels.run(again, rt::WarpOrder::descending);
  EXPECT_TRUE(sameBits(again.o, run.o));
  EXPECT_TRUE(sameBits(again.gradients.memory, run.gradients.memory));
}

void checkOnGpu(const AttentionSpec &spec, bool packed) { checkOnGpu(gpuData(spec, packed)); }

} // namespace gradc::codegen::gpu

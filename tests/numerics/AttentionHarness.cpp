// See AttentionHarness.h.
#include "tests/numerics/AttentionHarness.h"

#include <gtest/gtest.h>

namespace gradc::codegen::attention_test {

Kernels::Kernels(const AttentionSpec &spec, const CpuTarget &target)
    : spec(spec),
      forward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m,
                          llvm::StringRef name) { emitAttentionForward(m, name, spec, target); }),
      backward(target, [&](mlir::OpBuilder &, mlir::ModuleOp m, llvm::StringRef name) {
        emitAttentionBackward(m, name, spec, target);
      }) {}

void Kernels::run(Data &x, bool reversed) const {
  runForward(x, reversed);
  runBackward(x, reversed);
}

static void call(const CompiledKernel &kernel, const Arguments &arguments, int64_t tasks,
                 bool reversed) {
  std::vector<void *> addresses;
  for (const Arguments::Place &place : arguments.places)
    addresses.push_back(place.address);
  for (int64_t i = 0; i < tasks; ++i)
    kernel.call(addresses, 0, reversed ? tasks - 1 - i : i);
}

void Kernels::runForward(Data &x, bool reversed) const {
  callForward(x, [&](const Arguments &arguments) {
    call(forward, arguments, attentionForwardTaskCount(spec), reversed);
  });
}

void Kernels::runBackward(Data &x, bool reversed) const {
  callBackward(x, [&](const Arguments &arguments) {
    call(backward, arguments, attentionBackwardTaskCount(spec), reversed);
  });
}

std::vector<CpuTarget> everyTarget() {
  std::vector<CpuTarget> targets = hostTargets();
  if (targets.front().vectorBits < 512) {
    targets.push_back(targets.front());
    targets.back().vectorBits = 512;
  }
  return targets;
}
std::vector<CpuTarget> hostTarget() { return {CpuTarget::host()}; }

void check(const Data &data, const std::vector<CpuTarget> &targets) {
  const AttentionSpec &spec = data.spec;
  Reference want = data.want();
  for (const CpuTarget &target : targets) {
    SCOPED_TRACE(testing::Message()
                 << "B" << spec.batch << " T" << spec.seq << " H" << spec.heads << "/"
                 << spec.kvHeads << " D" << spec.headDim << (spec.causal ? " causal" : "") << " W"
                 << spec.window << (spec.documents ? " documents" : "") << " dropout "
                 << spec.dropout << " dtype " << static_cast<int>(spec.dtype) << ", "
                 << target.vectorBits << " bits");
    Data run = data;
    Kernels kernels(spec, target);
    ASSERT_TRUE(kernels);
    kernels.run(run);
    expectResult(spec.dtype, run.o, want.o, 1e-6, "o");
    EXPECT_LE(distance(run.lse, want.lse), 1e-6);
    Reference gradients = spec.narrow() ? data.want(run.o.data()) : want;
    expectResult(spec.dtype, run.gradients.gather(spec, 0), gradients.dq, 3e-6, "dq");
    expectResult(spec.dtype, run.gradients.gather(spec, 1), gradients.dk, 3e-6, "dk");
    expectResult(spec.dtype, run.gradients.gather(spec, 2), gradients.dv, 1e-6, "dv");
    EXPECT_TRUE(sameBits(run.in.memory, data.in.memory));
    run.gradients.expectGapsIntact();

    Data again = data;
    kernels.run(again, /*reversed=*/true);
    EXPECT_TRUE(sameBits(again.o, run.o));
    EXPECT_TRUE(sameBits(again.gradients.memory, run.gradients.memory));
  }
}

void check(const AttentionSpec &spec, bool packed, const std::vector<CpuTarget> &targets) {
  check(Data(spec, packed), targets);
}

} // namespace gradc::codegen::attention_test

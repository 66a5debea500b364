// The CPU's attention kernels in tests: compiled, run, and compared with f64.
#pragma once

#include "codegen/cpu/Attention.h"
#include "tests/numerics/AttentionData.h"
#include "tests/numerics/CompiledKernel.h"

namespace gradc::codegen::attention_test {

class Kernels {
public:
  Kernels(const AttentionSpec &spec, const CpuTarget &target);
  explicit operator bool() const { return forward && backward; }

  /// Forward, then backward; fails the test where anything but the results is written.
  void run(Data &x, bool reversed = false) const;
  void runForward(Data &x, bool reversed = false) const;
  void runBackward(Data &x, bool reversed = false) const;

private:
  AttentionSpec spec;
  CompiledKernel forward, backward;
};

/// The host, narrower vectors, and the widest, which LLVM splits where the host has none: the
/// shapes of tiles differ between them.
std::vector<CpuTarget> everyTarget();
std::vector<CpuTarget> hostTarget();

/// Compares both kernels with f64 on each target, the tasks in both orders.
void check(const Data &data, const std::vector<CpuTarget> &targets);
void check(const AttentionSpec &spec, bool packed, const std::vector<CpuTarget> &targets);

} // namespace gradc::codegen::attention_test

// Attention kernels in tests: operands in memory, compiled kernels, and the comparison with f64.
#pragma once

#include "tests/numerics/AttentionReference.h"
#include "tests/numerics/RowHarness.h"

namespace gradc::codegen::attention_test {

/// Memory for q, k and v (or their gradients): apart, or slices of one buffer whose tokens have a
/// gap between them that must stay untouched.
struct Operands {
  std::vector<float> memory;
  int64_t offsets[3];
  AttentionSpec::Strides strides[3];
  std::vector<char> used;

  Operands(const AttentionSpec &s, bool packed);
  float *at(int which) { return memory.data() + offsets[which]; }
  float *row(int which, int64_t token) { return at(which) + token * strides[which].token; }
  View view(int which) const { return {memory.data() + offsets[which], strides[which]}; }
  /// Contiguous.
  std::vector<float> gather(const AttentionSpec &s, int which) const;
  void expectGapsIntact() const;
};

/// The operands and results of one problem. Operands are normally distributed numbers, rounded to
/// the spec's dtype; results are NaN, which shows in every comparison where nothing is written.
struct Data {
  AttentionSpec spec;
  Operands in, gradients;
  std::vector<float> o, lse, dO;
  RandomKeys random{7, 3, 0};
  std::vector<int32_t> firstKeys; ///< with documents: those of `documentsOf(spec, 40)`

  Data(const AttentionSpec &s, bool packed, uint32_t seed = 1);
  float *dORow(int64_t token) { return dO.data() + token * spec.dO.token; }
  /// The exact results; for the backward, those of o as it is stored.
  Reference want(const float *storedO = nullptr) const;
};

/// First keys [batch, seq] of documents whose lengths are random and `length` on average; some are
/// of one token.
std::vector<int32_t> documentsOf(const AttentionSpec &s, int64_t length, uint32_t seed = 1);

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

/// |got - want| / |want| by norm; a NaN makes it infinite. Results that cancel (a row that sees one
/// key has no gradient) are measured against a tenth of their terms, which are about 1.
double distance(const std::vector<float> &got, const std::vector<double> &want);

/// The host, narrower vectors, and the widest, which LLVM splits where the host has none: the
/// shapes of tiles differ between them.
std::vector<CpuTarget> everyTarget();
std::vector<CpuTarget> hostTarget();

/// Compares both kernels with f64 on each target, the tasks in both orders.
void check(const Data &data, const std::vector<CpuTarget> &targets);
void check(const AttentionSpec &spec, bool packed, const std::vector<CpuTarget> &targets);

AttentionSpec shape(int64_t batch, int64_t seq, int64_t heads, int64_t kvHeads, int64_t headDim,
                    bool causal = true, int64_t window = 0);

} // namespace gradc::codegen::attention_test

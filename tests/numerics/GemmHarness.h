// Matrix products compiled and by double loops, and what their tests share.
#pragma once

#include "codegen/cpu/Gemm.h"
#include "tests/numerics/CompiledKernel.h"

namespace gradc::codegen {

/// A product of contiguous matrices, A and B stored by columns where transposed, with `gap`
/// elements after each row (column).
GemmSpec makeSpec(int64_t m, int64_t n, int64_t k, bool aTransposed, bool bTransposed,
                  int64_t gap = 0);

/// The product with each of its operands stored by rows and by columns.
std::vector<GemmSpec> allTransposes(int64_t m, int64_t n, int64_t k, int64_t gap = 0,
                                    int64_t batch = 1);

/// Where an element stands.
int64_t elementOffset(const GemmSpec::Matrix &x, int64_t batch, int64_t row, int64_t column);

/// Nearest number of 11 significant bits and f32's exponents, ties to even.
double roundToTf32(double value);

/// A product with random operands in [-1, 1), of the operands' types. They end with their last
/// element, so that a read beyond is one beyond the allocation.
struct GemmProblem {
  explicit GemmProblem(const GemmSpec &spec);

  /// f(batch, row, column) for the elements of C.
  template <typename F> void forEach(F f) const {
    for (int64_t batch = 0; batch < spec.batch; ++batch)
      for (int64_t i = 0; i < spec.m; ++i)
        for (int64_t j = 0; j < spec.n; ++j)
          f(batch, i, j);
  }

  /// C, the tasks run forwards or backwards.
  std::vector<float> run(const CompiledKernel &kernel, int64_t extent, bool backwards) const;

  /// Fails the test unless `c` is the product and nothing was written outside of it. The operands
  /// are as they are stored and, where the spec says so, rounded to tf32. Allowed is
  ///     s + u (|product| + s),   s = 2e-6 (sum of the terms' magnitudes + 0.1)
  /// where s is for sums in f32 (far above what rounding does to those here, far below one wrong
  /// term) and u, the unit roundoff of C's type, for the one rounding of a narrow C; 0 for f32,
  /// whose rounding s includes.
  void expectProduct(const std::vector<float> &c) const;

  GemmSpec spec;
  std::vector<float> a, b, before; ///< before: C, with numbers around it that must stay
  /// Of A and B, where the spec is scaled.
  static constexpr double scales[2] = {0.25, 8};

private:
  std::vector<double> asRead(const std::vector<float> &operand) const;
};

/// The products compiled into one module, whose functions they share: far faster than one by one.
/// The kernel's extent chooses the product.
CompiledKernel compileProducts(const std::vector<GemmSpec> &specs, const CpuTarget &target);

/// Compiles the products and checks each, with its tasks run in both orders.
void checkProducts(const std::vector<GemmSpec> &specs, const CpuTarget &target);

/// The host, narrower vectors, and ones of 512 bits: where the host has none of these, LLVM makes
/// two of each, which is slow but computes what the kernel says.
std::vector<CpuTarget> gemmTargets();
/// The same, each with products of bf16 summed up by pairs of steps and not: other products do not
/// differ.
std::vector<CpuTarget> bf16Targets();

} // namespace gradc::codegen

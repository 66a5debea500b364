// Products with all their operands in host memory, and what they should give, in f64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/Abi.h"

namespace gradc::rt {

/// What tells one product from another.
struct GemmCase {
  int64_t m = 1, n = 1, k = 1;
  int64_t typeA = GRADC_F32, typeB = GRADC_F32, typeC = GRADC_F32;
  bool transposeA = false, transposeB = false;
  int64_t epilogue = GRADC_NO_EPILOGUE;
  int64_t batch[2] = {1, 1};
  bool interleaved = false; ///< the outer batch's matrices lie between those of the inner one
  bool accumulate = false, tf32 = false, scaled = false;
};

/// Memory for a case, filled with numbers that its types hold exactly. Gaps of 8 elements lie
/// between rows, and buffers are aligned to 64 bytes as a plan's are.
class GemmOperandsOnHost {
public:
  explicit GemmOperandsOnHost(const GemmCase &gemm);

  const GradcGemm &gemm() const { return descriptor; }
  std::byte *a() { return place(memoryA); }
  std::byte *b() { return place(memoryB); }
  std::byte *c() { return place(memoryC); }
  std::byte *bias() { return place(memoryBias); }
  std::byte *aux() { return place(memoryAux); }
  std::byte *workspace() { return place(memoryWorkspace); }
  const std::byte *scaleA() const { return reinterpret_cast<const std::byte *>(&scales[0]); }
  const std::byte *scaleB() const { return reinterpret_cast<const std::byte *>(&scales[1]); }

  /// Compares what the product has written (C, and aux and bias where it writes them) with the
  /// reference for the operands as they were at the start, and all gaps with what they held. Fails
  /// the current test where something is off by more than the type's rounding; NaN is off.
  void expectReference() const;

private:
  struct Expected {
    std::vector<double> c, aux, bias;
  };
  static std::byte *place(std::vector<std::byte> &memory);
  static const std::byte *place(const std::vector<std::byte> &memory);
  void fill(std::vector<std::byte> &memory, int64_t type, int64_t elements, double range);
  GradcMatrix lay(std::vector<std::byte> &memory, int64_t type, int64_t rows, int64_t columns,
                  bool transposed, double range);
  Expected reference() const;
  double at(const std::vector<std::byte> &memory, const GradcMatrix &matrix, int64_t batch0,
            int64_t batch1, int64_t row, int64_t column) const;

  GemmCase asked;
  GradcGemm descriptor{};
  float scales[2] = {0.5f, 0.25f};
  uint64_t state = 1;
  std::vector<std::byte> memoryA, memoryB, memoryC, memoryBias, memoryAux, memoryWorkspace;
  std::vector<std::byte> before; ///< C
  Expected expected;
};

} // namespace gradc::rt

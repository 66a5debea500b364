// The matrix products of a GPU's library, played by the host.
#pragma once

#include <cstddef>

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

/// Resolved addresses of batch element (0, 0), and the product of the operands' scales.
struct GemmOperands {
  const std::byte *a, *b;
  std::byte *c;
  float scale;
};

/// Runs a product in plain loops: operands in any of GradcType's types, sums in f64, rounded once
/// to f32, to what is accumulated, and to C's type. A defect status names a type that does not
/// exist, or an operand whose elements reach outside of its buffer; C is then not written.
Status emulateGemm(const GradcGemm &gemm, const GemmOperands &operands);

} // namespace gradc::rt

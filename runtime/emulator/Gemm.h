// The matrix products of a GPU's library, played by the host.
#pragma once

#include <cstddef>

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

/// Resolved addresses of batch element (0, 0), the product of the operands' scales, and the
/// epilogue's addresses where it has them.
struct GemmOperands {
  const std::byte *a, *b;
  std::byte *c;
  float scale;
  std::byte *bias = nullptr, *aux = nullptr;
};

/// Runs a product in plain loops: operands in any of GradcType's types, sums in f64, rounded once
/// to f32, to what is accumulated, and to C's type. An epilogue sees the f32; what it writes is
/// rounded once. A defect status names what checkGemm refuses; nothing is then written.
Status emulateGemm(const GradcGemm &gemm, const GemmOperands &operands);

} // namespace gradc::rt

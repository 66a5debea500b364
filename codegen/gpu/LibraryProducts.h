// What cuBLASLt makes of matrix products, by its documentation: epilogues, types, layouts, and the
// workspace that it likes.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "ir/KernelLibrary.h"
#include "ir/Nn.h"

namespace gradc::codegen::gpu {

/// The least compute capability, times ten, with fp8 products.
inline constexpr int float8Capability = 89;

/// Whether the library takes the product with its epilogue.
bool libraryTakesEpilogue(nn::ProductOpInterface product);

/// The element type of biases that it adds to this product; null where it adds none.
mlir::Type libraryBiasType(nn::ProductOpInterface product);

/// How the product's operands must lie once they are fp8 numbers.
Float8Operands libraryFloat8Operands(nn::ProductOpInterface product, const GpuTarget &target);

/// Bytes of workspace for a product: what the library's own documentation recommends.
int64_t libraryWorkspaceBytes(const GpuTarget &target);

} // namespace gradc::codegen::gpu

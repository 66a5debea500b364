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

/// Rows of a chunk of logits. Its three products are 6 rows FLOPs an element of the head's weight,
/// whose gradient the chunk reads and writes (8 bytes): with 4096 rows 3072 FLOPs a byte, where an
/// A100 has 156 bf16 FLOPs a byte of its memory (312e12 / 2.0e12) and an H200 206 (990e12
/// / 4.8e12), so that chunks cost 5 to 7 % of those products' time.
inline constexpr int64_t lossChunkRows = 4096;

/// Bytes of workspace for a product: what the library's own documentation recommends, and what it
/// takes to begin at a multiple of 256.
int64_t libraryWorkspaceBytes(const GpuTarget &target);

} // namespace gradc::codegen::gpu

// A product as cuBLASLt is told it: matrices stored column by column.
//
// Our matrices are stored row by row, which read column by column are their transposes. So the
// library computes Cᵀ = Bᵀ·Aᵀ: its first operand is our B, its second our A, its rows our columns.
// No element moves. A bias of an element a column of ours is one a row of its, as it wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/Abi.h"
#include "runtime/Status.h"
#include "runtime/cuda/CublasLtApi.h"

namespace gradc::rt {

/// Device addresses of batch element (0, 0), null where the product has no such operand.
struct GemmAddresses {
  const std::byte *a = nullptr, *b = nullptr;
  std::byte *c = nullptr;
  const std::byte *scaleA = nullptr, *scaleB = nullptr; ///< an f32 each
  std::byte *bias = nullptr, *aux = nullptr;
  std::byte *workspace = nullptr;
};

/// A stored matrix: `rows` elements side by side, `columns` times, `stride` elements apart.
struct CublasLtMatrix {
  cublaslt::DataType type = cublaslt::f32;
  cublaslt::Transpose transpose = cublaslt::opN; ///< how the product reads it
  int64_t rows = 0, columns = 0, stride = 0;
  int64_t batchStride = 0;
  uint32_t alignment = 0; ///< bytes that every matrix of the batch begins at a multiple of
  bool operator==(const CublasLtMatrix &) const = default;
};

/// All that an algorithm is chosen by; `first` is our B and `second` our A.
struct CublasLtShape {
  CublasLtMatrix first, second, result;
  int64_t batch = 1;
  cublaslt::ComputeType compute = cublaslt::compute32F;
  cublaslt::Epilogue epilogue = cublaslt::epilogueDefault;
  std::optional<cublaslt::DataType> biasType; ///< of an epilogue that has a bias, or its gradient
  int64_t auxStride = 0;
  bool accumulates = false, scaled = false;
  int64_t workspaceBytes = 0;
  bool operator==(const CublasLtShape &) const = default;

  /// "bf16 n 768x512:768 · bf16 n … -> …": equal for equal shapes only; keys a cache of choices.
  std::string text() const;
};

/// Batches that cannot be told by one stride are `outerBatch` calls, the addresses of each being
/// `batchStride[0]` elements of their matrix behind those before.
struct CublasLtCalls {
  CublasLtShape shape;
  int64_t outerBatch = 1;
};

/// Bytes of an element; 0 of what is no GradcType.
int64_t cublasLtBytesOf(int64_t gradcType);

/// How the library is called for a product. A defect status names what it cannot be told: matrices
/// none of whose strides is 1, operands of two types, fp8 that does not lie along the depth, an
/// epilogue of batches.
Expected<CublasLtCalls> cublasLtCalls(const GradcGemm &gemm, const GemmAddresses &addresses);

} // namespace gradc::rt

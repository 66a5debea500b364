// What the small kernel families that are not row programs are asked for, the same on every target.
// What each kernel computes and on which buffers stands with the family's emitter (codegen/cpu).
#pragma once

#include "ir/KernelLibrary.h"
#include "ir/Nn.h"
#include "ir/row/RowProgram.h"

#include <cstdint>
#include <string>

namespace gradc::codegen {

struct RopeSpec {
  /// Elements between neighbours; the elements of a head are contiguous.
  struct Strides {
    int64_t batch = 0, token = 0, head = 0;
    bool operator==(const Strides &) const = default;
  };
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t headDim = 0; ///< even
  bool inverse = false;
  Strides x, out;
  row::Dtype dtype = row::Dtype::f32; ///< of x and out
  bool positions = false;             ///< are a buffer
  int64_t alignedLanes = 8;           ///< elements that x, the tables and out begin at multiples of
  bool operator==(const RopeSpec &) const = default;
};

struct DocumentsSpec {
  int64_t seq = 1; ///< tokens of a row
  int32_t separator = 0;
  bool operator==(const DocumentsSpec &) const = default;
};

struct EmbeddingSpec {
  int64_t vocab = 0;    ///< V
  int64_t channels = 0; ///< C
  row::Dtype table = row::Dtype::f32, out = row::Dtype::f32;
  int64_t alignedLanes = 8; ///< elements that the table and out begin at multiples of
  bool operator==(const EmbeddingSpec &) const = default;
};

struct EmbeddingGradientSpec {
  int64_t vocab = 0;
  int64_t channels = 0;
  bool accumulate = false; ///< adds to what out holds; else all of out is written
  row::Dtype dy = row::Dtype::f32;
  int64_t alignedLanes = 8; ///< elements that dy and out begin at multiples of
  bool operator==(const EmbeddingGradientSpec &) const = default;
};

/// Empty when a kernel can be emitted, else what is wrong with the spec.
std::string verify(const RopeSpec &spec);
std::string verify(const EmbeddingSpec &spec);
std::string verify(const EmbeddingGradientSpec &spec);

/// The spec of an op whose operands and then results have the given row strides in elements (0:
/// contiguous).
RopeSpec specOf(nn::RopeOp op, llvm::ArrayRef<int64_t> strides);
DocumentsSpec specOf(nn::DocumentsOp op);
EmbeddingSpec specOf(nn::EmbeddingOp op);
EmbeddingGradientSpec specOf(nn::EmbeddingGradOp op);

/// What the sums' kernels take from their launches, on every target.
RuntimeSizes runtimeSizes(mlir::Operation *op);

// Sizes of an op's operands and results, as specs take them.
int64_t elementsOf(mlir::Value value);
int64_t rowsOf(mlir::Value value);
int64_t columnsOf(mlir::Value value);
row::Dtype dtypeOf(mlir::Value value);

} // namespace gradc::codegen

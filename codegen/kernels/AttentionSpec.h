// What attention kernels are asked for, the same on every target. What they compute, and on which
// buffers, stands in codegen/cpu/Attention.h.
#pragma once

#include "ir/Nn.h"
#include "ir/row/RowProgram.h"

#include <cstdint>
#include <string>

namespace gradc::codegen {

struct AttentionSpec {
  /// Elements between neighbours; the elements of a head are contiguous.
  struct Strides {
    int64_t batch = 0, token = 0, head = 0;
    bool operator==(const Strides &) const = default;
  };

  row::Dtype dtype = row::Dtype::f32; ///< or bf16, f16
  int64_t batch = 1;
  int64_t seq = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0; ///< divides heads; query head h reads key head h / (heads / kvHeads)
  int64_t headDim = 0;
  double scale = 1; ///< of the scores
  bool causal = true;
  /// 0: none. Otherwise query i sees the keys i - window + 1 .. i, and `causal` is implied.
  int64_t window = 0;
  /// Besides, query i sees no key before its first key, which a buffer says (a document's start).
  bool documents = false;
  /// Of the softmax's results; the numbers are those of nn.dropout on [batch, heads, seq, seq].
  double dropout = 0;     ///< below 1
  Strides q, k, v, o;     ///< k, v of kvHeads heads
  Strides dO, dq, dk, dv; ///< backward only
  int64_t alignment = 16; ///< bytes that all of these begin at multiples of
  bool operator==(const AttentionSpec &) const = default;

  /// Strides of a contiguous [batch, seq, heads, headDim].
  static Strides contiguous(int64_t seq, int64_t heads, int64_t headDim);

  /// Keys behind a query are hidden from it.
  bool masked() const { return causal || window > 0; }
  /// Keys far before a query are hidden from it.
  bool forgets() const { return window > 0 || documents; }
  /// Buffers between the tensors that are read and those that are written.
  int maskBuffers() const { return (documents ? 1 : 0) + (dropout > 0 ? 4 : 0); }
  bool narrow() const { return dtype != row::Dtype::f32; }
  int64_t group() const { return heads / kvHeads; }
};

/// Empty when a kernel can be emitted, else what is wrong with the spec.
std::string verify(const AttentionSpec &spec);

/// The spec of an op whose operands and then results have the given row strides in elements (0:
/// contiguous).
AttentionSpec specOf(nn::AttentionOp op, llvm::ArrayRef<int64_t> strides);
AttentionSpec specOf(nn::AttentionGradOp op, llvm::ArrayRef<int64_t> strides);

} // namespace gradc::codegen

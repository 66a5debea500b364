// Attention without its [seq, seq] matrix: scores live a tile at a time in a core's cache, the row
// maxima and sums are carried along the keys, and the backward pass recomputes the scores from the
// logarithm of each row's sum. Softmax works in base 2, scale * log2(e) being folded into the
// queries as they are packed.
//
// Buffers. q, k, v, o and their gradients, all of the spec's dtype, are addressed by strides, so
// that q, k and v may be slices of one packed [batch, seq, 3 * heads * headDim] buffer; lse is f32
// [batch, heads, seq].
//   forward:  q, k, v, [first keys,] [seed, step, first row, stream,] o, lse
//   backward: q, k, v, o, lse, dO, [first keys,] [seed, step, first row, stream,] dq, dk, dv
// First keys, i32 [batch, seq], only with documents; the next four, single i32s, only with dropout.
// The last two resp. three are written; no
// output may overlap another buffer. All is computed in f32; an element is rounded once, when it is
// stored. Scratch is on the stack: about 0.5 MiB for head dimensions up to 128, 4 MiB at 1024, the
// largest there is, and up to 2 MiB more where elements are narrow. Tasks are a function of the
// spec alone.
//
// What is not finite: a key that the mask hides from a query has no effect on it, whatever it
// holds. A key whose score is -inf has a weight of 0, and its infinities reach no gradient. A query
// all of whose scores are -inf gives 0, an lse of -inf, and no gradient.
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/row/RowProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

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

int64_t attentionForwardTaskCount(const AttentionSpec &spec);
int64_t attentionBackwardTaskCount(const AttentionSpec &spec);

/// (query, key) pairs that are not masked, of one head of one sequence; documents, whose lengths
/// are known at run time only, count as one.
int64_t attentionPairs(const AttentionSpec &spec);
/// Operations of the matrix products, masked pairs not counted: 2 products forward, 5 backward.
int64_t attentionForwardFlops(const AttentionSpec &spec);
int64_t attentionBackwardFlops(const AttentionSpec &spec);
/// Bytes of the inputs and outputs, each once.
int64_t attentionForwardBytes(const AttentionSpec &spec);
int64_t attentionBackwardBytes(const AttentionSpec &spec);

/// Adds the kernel, and the tiles it calls, to `module`. The spec verifies.
mlir::func::FuncOp emitAttentionForward(mlir::ModuleOp module, llvm::StringRef name,
                                        const AttentionSpec &spec, const CpuTarget &target);
mlir::func::FuncOp emitAttentionBackward(mlir::ModuleOp module, llvm::StringRef name,
                                         const AttentionSpec &spec, const CpuTarget &target);

} // namespace gradc::codegen

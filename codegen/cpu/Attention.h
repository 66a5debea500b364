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
#include "codegen/kernels/AttentionSpec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>

namespace gradc::codegen {

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

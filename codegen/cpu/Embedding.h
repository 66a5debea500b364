// Token embedding: rows of a table by token, and its gradient.
//
// Forward, buffers: tokens i32 [N], table [V, C], out [N, C], the last two f32, bf16 or f16, each
// its own; a task handles embeddingRowsPerTask tokens. Gradient, buffers: tokens i32 [N], dy [N, C]
// of any of these types, out f32 [V, C]; a task owns a range of columns and adds the rows of dy in
// their order, so that nothing depends on which thread runs it. The extent is N.
//
// A negative token gives a row of zeros and no gradient. Tokens must be below V: whoever reads the
// data checks that.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/kernels/Specs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

inline constexpr int64_t embeddingRowsPerTask = 64;
/// Columns of one task of the gradient.
inline constexpr int64_t embeddingColumnsPerTask = 64;

int64_t taskCount(const EmbeddingSpec &spec, int64_t extent);
int64_t taskCount(const EmbeddingGradientSpec &spec, int64_t extent);
int64_t embeddingFlops(const EmbeddingSpec &spec, int64_t extent);
int64_t embeddingFlops(const EmbeddingGradientSpec &spec, int64_t extent);
int64_t embeddingBytes(const EmbeddingSpec &spec, int64_t extent);
int64_t embeddingBytes(const EmbeddingGradientSpec &spec, int64_t extent);

mlir::func::FuncOp emitEmbedding(mlir::ModuleOp module, llvm::StringRef name,
                                 const EmbeddingSpec &spec, const CpuTarget &target);
mlir::func::FuncOp emitEmbeddingGradient(mlir::ModuleOp module, llvm::StringRef name,
                                         const EmbeddingGradientSpec &spec,
                                         const CpuTarget &target);

} // namespace gradc::codegen

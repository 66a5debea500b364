// Token embedding and its gradient: buffers and meaning as codegen/cpu/Embedding.h has them.
//
// Forward: a warp copies the row of a token. Gradient: a warp owns a row of the table, in a slice
// of its columns, looks through all tokens, and adds up the rows of dy that belong to it in their
// order. So nobody else writes there, and no atomics are needed; the tokens are a few KB, which
// stay in the caches.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/kernels/Specs.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

int64_t taskCount(const EmbeddingSpec &spec, int64_t extent);
int64_t taskCount(const EmbeddingGradientSpec &spec, int64_t extent);

/// What a launch on `tokens` tokens does. A table that has fewer rows than there are tokens comes
/// from a cache; the least of a larger one is a row a token, as the kernel reads it.
KernelWork embeddingWork(const EmbeddingSpec &spec, int64_t tokens);
KernelWork embeddingGradientWork(const EmbeddingGradientSpec &spec, int64_t tokens);

mlir::LLVM::LLVMFuncOp emitEmbedding(mlir::ModuleOp module, llvm::StringRef name,
                                     const EmbeddingSpec &spec, const GpuTarget &target);
mlir::LLVM::LLVMFuncOp emitEmbeddingGradient(mlir::ModuleOp module, llvm::StringRef name,
                                             const EmbeddingGradientSpec &spec,
                                             const GpuTarget &target);

} // namespace gradc::codegen::gpu

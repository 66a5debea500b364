// Where the documents of packed rows begin: buffers and meaning as codegen/cpu/Documents.h has
// them. A block is one warp and takes one row of tokens, 32 at a time: the separators among them
// are the bits of one word, and the last before each token is found in it.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/kernels/Specs.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// A task is a row.
int64_t taskCount(const DocumentsSpec &spec, int64_t extent);

/// What a launch on `tokens` tokens does.
KernelWork documentsWork(const DocumentsSpec &spec, int64_t tokens);

mlir::LLVM::LLVMFuncOp emitDocuments(mlir::ModuleOp module, llvm::StringRef name,
                                     const DocumentsSpec &spec, const GpuTarget &target);

} // namespace gradc::codegen::gpu

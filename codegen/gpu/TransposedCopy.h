// Bytes of a matrix, transposed: a block turns a tile of 64 x 64 in shared memory, reading and
// writing 16 bytes a thread.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// Bytes that a thread moves at once; rows and columns are multiples of them.
inline constexpr int64_t transposedBytes = 16;

/// A task is a tile.
int64_t transposedCopyBlocks(int64_t rows, int64_t columns);

/// Reads and writes every byte once.
KernelWork transposedCopyWork(int64_t rows, int64_t columns);

/// Buffers {in u8 [rows, columns], out u8 [columns, rows]}.
mlir::LLVM::LLVMFuncOp emitTransposedCopy(mlir::ModuleOp module, llvm::StringRef name, int64_t rows,
                                          int64_t columns, const GpuTarget &target);

} // namespace gradc::codegen::gpu

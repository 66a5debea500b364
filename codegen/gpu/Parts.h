// Kernels of launches in parts (GradcLaunch in runtime/Abi.h).
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace gradc::codegen::gpu {

/// Bytes of the table of a launch of `parts` parts of `buffers` buffers each.
int64_t partTableBytes(int64_t parts, int64_t buffers);

/// Gives a finished kernel, whose parameters are buffers and an extent, the parameters of a launch
/// in parts: a table and the number of parts. Each block looks up its part first, and then does
/// what the kernel does.
void takeParts(mlir::LLVM::LLVMFuncOp kernel);

} // namespace gradc::codegen::gpu

// Rotary position embedding: buffers and meaning as codegen/cpu/Rope.h has them. A warp turns all
// heads of a token, so that its threads read memory side by side; the tables' rows come from the
// caches.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/kernels/Specs.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

int64_t taskCount(const RopeSpec &spec, int64_t extent);

/// What a launch on `tokens` tokens does.
KernelWork ropeWork(const RopeSpec &spec, int64_t tokens);

mlir::LLVM::LLVMFuncOp emitRope(mlir::ModuleOp module, llvm::StringRef name, const RopeSpec &spec,
                                const GpuTarget &target);

} // namespace gradc::codegen::gpu

// Elementary functions on f32 scalars and vectors, printed as arithmetic: no library calls, the
// same bits on every thread and, given fused multiply-adds, on every target. NaN goes to NaN.
// Largest errors seen over a dense sweep, in units in the last place of the result:
// exp 1, log 1, tanh 3, erf 3; sqrt is exact and rsqrt within 1.
#pragma once

#include "codegen/cpu/Vectors.h"

namespace gradc::codegen {

/// 0 below -87 (where the result would near the smallest normal number), infinity above 88.73.
mlir::Value emitExp(const Vectors &vectors, mlir::Value x);
/// -infinity at 0, NaN below.
mlir::Value emitLog(const Vectors &vectors, mlir::Value x);
mlir::Value emitSqrt(const Vectors &vectors, mlir::Value x);
mlir::Value emitRsqrt(const Vectors &vectors, mlir::Value x);
mlir::Value emitTanh(const Vectors &vectors, mlir::Value x);
mlir::Value emitErf(const Vectors &vectors, mlir::Value x);

/// Any pointwise node kind (arithmetic, functions, comparisons, select) on operands of one shape.
mlir::Value emitPointwise(const Vectors &vectors, row::NodeKind kind,
                          llvm::ArrayRef<mlir::Value> operands);

} // namespace gradc::codegen

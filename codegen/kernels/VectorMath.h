// Elementary functions on f32 scalars and vectors, printed as arithmetic: no library calls, the
// same bits on every thread and, given fused multiply-adds, on every target. NaN goes to NaN.
// Largest errors seen over a dense sweep, in units in the last place of the result:
// exp 1.3, log 1.1, tanh 4.5, erf 5.3, rsqrt 1.5; sqrt is correctly rounded.
#pragma once

#include "codegen/kernels/Vectors.h"

namespace gradc::codegen {

/// 0 below -87, where the result nears the smallest normal number; infinity above 88.72.
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

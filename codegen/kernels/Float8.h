// The two fp8 formats in f32 arithmetic, for machines without instructions for them: conversions of
// scalars and vectors, exact in every case and of the same bits on every target.
#pragma once

#include "codegen/kernels/Vectors.h"

namespace gradc::codegen {

inline bool isFloat8(row::Dtype dtype) {
  return dtype == row::Dtype::f8e4m3 || dtype == row::Dtype::f8e5m2;
}

/// i8 to f32; every code has a number, or is a NaN or an infinity, that f32 holds.
mlir::Value widenFloat8(const Vectors &v, row::Dtype dtype, mlir::Value code);

/// f32 to the i8 of the nearest number, ties to even. What is too large, infinities too, gives the
/// largest number of its sign; a NaN stays one.
mlir::Value narrowFloat8(const Vectors &v, row::Dtype dtype, mlir::Value value);

} // namespace gradc::codegen

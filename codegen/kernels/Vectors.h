// The small vocabulary in which kernels are printed: f32 and i32 values that are scalars or vectors
// of the target's width, and elements of any dtype in memory. Nothing here decides an order
// of evaluation; everything is explicit, so that a kernel's bits do not depend on LLVM's choices.
#pragma once

#include "codegen/kernels/VectorTarget.h"
#include "ir/row/RowProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace gradc::codegen {

/// Cheap to copy; holds no state but where it builds.
class Vectors {
public:
  Vectors(mlir::OpBuilder &builder, mlir::Location loc, const VectorTarget &target);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t lanes; ///< f32 or i32 values in a vector
  mlir::Type f32, i32, i64, pointer;

  /// `element` itself or a vector of it, as `like` is a scalar or a vector.
  mlir::Type shapedAs(mlir::Type element, mlir::Value like) const;
  mlir::VectorType vectorOf(mlir::Type element) const;

  /// A number of type `type`: a float or integer, or a vector with the same number in each lane.
  mlir::Value constant(mlir::Type type, double value) const;
  mlir::Value index(int64_t value) const; ///< i64
  mlir::Value splat(mlir::Value scalar) const;
  /// 0, 1, 2, … as vector of i32.
  mlir::Value iota() const;

  // Arithmetic that is neither contracted nor reordered: a value has the same bits whatever else is
  // computed beside it.
  mlir::Value add(mlir::Value x, mlir::Value y) const;
  mlir::Value sub(mlir::Value x, mlir::Value y) const;
  mlir::Value mul(mlir::Value x, mlir::Value y) const;
  mlir::Value div(mlir::Value x, mlir::Value y) const;
  /// x * y + z, fused where the target can.
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) const;
  // Two bf16 in each 32 bits, the first in the lower half; their type is that of f32.
  mlir::Value pairBf16(mlir::Value first, mlir::Value second) const; ///< of f32 that are bf16
  /// sum + second halves' product + first halves' product.
  mlir::Value dotBf16(mlir::Value x, mlir::Value y, mlir::Value sum) const;
  /// NaN when either is NaN; the sign of a zero is not defined.
  mlir::Value maximum(mlir::Value x, mlir::Value y) const;
  mlir::Value minimum(mlir::Value x, mlir::Value y) const;
  /// x limited to `bound` from above (below); a NaN stays. One instruction, unlike minimum.
  mlir::Value limitAbove(mlir::Value x, double bound) const;
  mlir::Value limitBelow(mlir::Value x, double bound) const;
  /// Polynomial in x, coefficients from the constant term up.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> coefficients) const;

  /// f32 rounded to the nearest number of a narrower type.
  mlir::Value round(row::Dtype dtype, mlir::Value x) const {
    return widen(dtype, narrow(dtype, x));
  }

  mlir::Value addIndex(mlir::Value x, mlir::Value y) const;
  mlir::Value mulIndex(mlir::Value x, mlir::Value y) const;

  /// Mask of the lanes below `count` (static, or an i64 value).
  mlir::Value firstLanes(int64_t count) const;
  mlir::Value firstLanes(mlir::Value count) const;

  // Memory, of any address space. `pointer` is the address of the first element; `mask` is null, or
  // a condition for each lane, or one for all of them. Narrow types are widened to f32 when loaded
  // and rounded to nearest even when stored; what fp8 types cannot hold becomes their largest
  // number. Masked lanes load as 0.
  mlir::Value elementPointer(row::Dtype dtype, mlir::Value base, mlir::Value index) const;
  mlir::Value elementPointer(row::Dtype dtype, mlir::Value base, int64_t index) const;
  mlir::Value loadScalar(row::Dtype dtype, mlir::Value pointer) const;
  mlir::Value loadVector(row::Dtype dtype, mlir::Value pointer, mlir::Value mask) const;
  void storeScalar(row::Dtype dtype, mlir::Value value, mlir::Value pointer) const;
  void storeVector(row::Dtype dtype, mlir::Value value, mlir::Value pointer,
                   mlir::Value mask) const;

  /// Folds a vector to a scalar: upper half with lower half, until one lane is left.
  mlir::Value foldLanes(mlir::Value vector,
                        llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine) const;

private:
  mlir::Type memoryType(row::Dtype dtype) const;
  mlir::Value widen(row::Dtype dtype, mlir::Value stored) const;
  mlir::Value narrow(row::Dtype dtype, mlir::Value value) const;

  mlir::Value loadWhere(mlir::Value condition, mlir::VectorType type, mlir::Value pointer,
                        unsigned alignment) const;
  unsigned vectorAlignment(row::Dtype dtype) const; ///< bytes

  bool hasFma, hasBf16, aligned;
};

} // namespace gradc::codegen

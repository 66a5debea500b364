// Prints the inside of kernels by straight-line C++: scf loops over i64, vectors of f32, and bare
// pointers. What a kernel's function and arguments are is its target's.
//
// Pointers are in elements of 4 bytes where no dtype is named.
#pragma once

#include "codegen/kernels/Vectors.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace gradc::codegen {

class KernelPrinter {
public:
  using Value = mlir::Value;

  KernelPrinter(mlir::MLIRContext *context, const VectorTarget &target)
      : b(context), loc(b.getUnknownLoc()), v(b, loc, target) {}
  KernelPrinter(const KernelPrinter &) = delete;

  mlir::OpBuilder &builder() { return b; }
  mlir::Location location() const { return loc; }
  int64_t lanes() const { return v.lanes; }
  mlir::VectorType vectorType() const { return v.vectorOf(v.f32); }

  // --- i64
  Value index(int64_t value);
  Value add(Value x, Value y);
  Value add(Value x, int64_t y) { return y == 0 ? x : add(x, index(y)); }
  Value sub(Value x, Value y);
  Value sub(Value x, int64_t y) { return y == 0 ? x : sub(x, index(y)); }
  Value mul(Value x, Value y);
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, index(y)); }
  Value divide(Value x, int64_t y); ///< of a number that is not negative
  Value ceilDivide(Value x, int64_t y) { return divide(add(x, y - 1), y); } ///< likewise
  Value remainder(Value x, int64_t y); ///< of a number that is not negative
  Value roundDown(Value x, int64_t to) { return mul(divide(x, to), to); }
  Value roundUp(Value x, int64_t to) { return roundDown(add(x, to - 1), to); }
  Value minimum(Value x, Value y);
  Value minimum(Value x, int64_t y) { return minimum(x, index(y)); }
  Value maximum(Value x, Value y);
  Value maximum(Value x, int64_t y) { return maximum(x, index(y)); }
  Value less(Value x, Value y);  ///< i1, signed
  Value equal(Value x, Value y); ///< i1
  Value either(Value x, Value y);
  Value both(Value x, Value y);
  Value select(Value condition, Value x, Value y);

  // --- memory
  Value at(Value pointer, Value elements);
  Value at(Value pointer, int64_t elements);
  Value load(Value pointer) { return v.loadVector(row::Dtype::f32, pointer, {}); }
  Value loadFloat(Value pointer) { return v.loadScalar(row::Dtype::f32, pointer); }
  Value loadInt(Value pointer);              ///< an i32, widened to i64
  void storeInt(Value value, Value pointer); ///< an i64, narrowed to i32
  void store(Value value, Value pointer);
  /// The first `count` lanes only; the others load as zero. Narrow elements as Vectors has them.
  Value loadFirst(Value pointer, int64_t count, row::Dtype dtype = row::Dtype::f32);
  void storeFirst(Value value, Value pointer, int64_t count, row::Dtype dtype = row::Dtype::f32);

  // --- f32: what Vectors has, and
  Value reals(double value) { return v.constant(vectorType(), value); }
  /// The greater; y where either is NaN. One instruction.
  Value greater(Value x, Value y);
  Value equalF(Value x, Value y); ///< false where either is NaN
  Value isNan(Value x);
  /// Sum over the lanes, or their greatest, as a scalar.
  Value sumLanes(Value vector);
  Value maxLanes(Value vector);
  /// 2^x of a vector, x < 128, to about 1 ulp; exactly 0 below -127; NaN stays NaN.
  Value exp2(Value x);

  // --- control
  using Body = llvm::function_ref<void(Value)>;
  void forRange(Value low, Value high, int64_t step, Body body);
  void forRange(int64_t low, Value high, int64_t step, Body body);
  void forRange(int64_t low, int64_t high, int64_t step, Body body);
  /// A loop that carries values: `body(i, values)` returns the next ones.
  using CarryBody = llvm::function_ref<llvm::SmallVector<Value>(Value, llvm::ArrayRef<Value>)>;
  llvm::SmallVector<Value> forRange(Value low, Value high, int64_t step,
                                    llvm::ArrayRef<Value> initial, CarryBody body);
  using Block = llvm::function_ref<void()>;
  void ifTrue(Value condition, Block then);
  void ifTrue(Value condition, Block then, Block otherwise);

protected:
  mlir::OpBuilder b;
  mlir::Location loc;

public:
  const Vectors v; ///< f32 arithmetic, built at the same place
};

} // namespace gradc::codegen

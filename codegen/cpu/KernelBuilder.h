// Builds one kernel function by straight-line C++: scf loops over i64, 32-bit float vectors as wide
// as the machine's registers, and bare pointers. For the kernel families that are not row programs.
//
//     KernelBuilder k(module, name, target);
//     Value x = k.buffer(0), y = k.buffer(1);
//     k.forRange(0, n, k.lanes(), [&](Value i) { k.store(k.load(k.at(x, i)), k.at(y, i)); });
//     k.finish();
//
// Pointers are in elements of 4 bytes where no dtype is named; loads and stores need the alignment
// of one element only.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/cpu/Vectors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace gradc::codegen {

class KernelBuilder {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;

  /// A public function with GradcKernelFn's signature.
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target);
  /// A function of this module only, which is never inlined.
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target,
                mlir::FunctionType type);

  /// Ends the function with a return. Call once, last.
  mlir::func::FuncOp finish(ValueRange results = {});

  mlir::OpBuilder &builder() { return b; }
  mlir::Location location() const { return loc; }
  mlir::ModuleOp module() const { return mod; }
  const CpuTarget &target() const { return cpu; }
  int64_t lanes() const { return cpu.f32Lanes(); }
  mlir::Type pointerType() const { return v.pointer; }
  mlir::VectorType vectorType() const { return v.vectorOf(v.f32); }

  // --- arguments
  Value parameter(int index) { return function.getArgument(index); }
  Value buffer(int index); ///< of a kernel: the buffer's address
  Value extent() { return parameter(1); }
  Value task() { return parameter(2); }

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
  Value select(Value condition, Value x, Value y);

  // --- memory
  Value at(Value pointer, Value elements);
  Value at(Value pointer, int64_t elements);
  /// Uninitialised floats on the stack, aligned to 64 bytes, for the whole function.
  Value stack(int64_t floats);
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

private:
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target,
                mlir::FunctionType type, bool isPrivate);

  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::ModuleOp mod;
  CpuTarget cpu;
  mlir::func::FuncOp function;

public:
  const Vectors v; ///< f32 arithmetic, built at the same place
};

} // namespace gradc::codegen

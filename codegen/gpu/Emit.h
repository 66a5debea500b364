// Kernels written as arithmetic: values with operators, variables that loops carry, and the
// instructions of matrices, warps and asynchronous copies. For kernels whose state is many
// registers and whose offsets are 32-bit; row programs are printed through BlockPrinter alone.
#pragma once

#include "codegen/gpu/BlockPrinter.h"

#include <vector>

namespace gradc::codegen::gpu {

class Emit;

/// A value of the kernel: i1, i32, i64, f32, a pointer or a vector.
struct Val {
  Emit *e = nullptr;
  mlir::Value v;
};

// Integers are not negative where they are divided; both sides have one type. Floats are neither
// contracted nor reordered.
Val operator+(Val x, Val y);
Val operator-(Val x, Val y);
Val operator*(Val x, Val y);
Val operator/(Val x, Val y);
Val operator%(Val x, Val y);
Val operator&(Val x, Val y);
Val operator|(Val x, Val y);
Val operator^(Val x, Val y);
Val operator>>(Val x, Val y);
Val operator<<(Val x, Val y);
Val operator+(Val x, int64_t y);
Val operator-(Val x, int64_t y);
Val operator*(Val x, int64_t y);
Val operator/(Val x, int64_t y);
Val operator%(Val x, int64_t y);
Val operator&(Val x, int64_t y);
Val operator^(Val x, int64_t y);
Val operator>>(Val x, int64_t y);

/// Variables that a loop or a condition assigns: each has a new value after it.
using Variables = std::vector<Val *>;

class Emit {
public:
  explicit Emit(BlockPrinter &printer)
      : k(printer), b(printer.builder()), loc(printer.location()) {}
  Emit(const Emit &) = delete;

  BlockPrinter &k;

  Val of(mlir::Value value) { return {this, value}; }
  Val number(int64_t value); ///< i32
  Val number(mlir::Type type, int64_t value);
  Val truth(bool value);  ///< i1
  Val real(double value); ///< f32
  Val widen(Val x);       ///< an i32 that is not negative, to i64
  Val narrow(Val x);      ///< an i64 to i32
  Val thread() { return narrow(of(k.thread())); }
  Val task() { return narrow(of(k.task())); }

  Val less(Val x, Val y); ///< signed
  Val lessUnsigned(Val x, Val y);
  Val equal(Val x, Val y); ///< floats: false where either is NaN
  Val less(Val x, int64_t y) { return less(x, number(x.v.getType(), y)); }
  Val equal(Val x, int64_t y) { return equal(x, number(x.v.getType(), y)); }
  Val select(Val condition, Val x, Val y);
  Val minimum(Val x, Val y); ///< i32
  Val maximum(Val x, Val y); ///< i32

  // --- f32
  Val fma(Val x, Val y, Val z);
  Val negate(Val x);
  Val greater(Val x, Val y); ///< the one that is not NaN where the other is
  Val exp2(Val x);           ///< to 2 ulp; 0 below the normal numbers
  Val log2(Val x);           ///< to 1e-7, absolute or relative
  Val isNan(Val x);
  Val notZero(Val x); ///< true for NaN
  Val bits(Val x, mlir::Type type);
  Val element(Val vector, int64_t index);
  /// Two f32 rounded to a narrow dtype, the first in the lower half of an i32.
  Val pack(row::Dtype dtype, Val low, Val high);
  std::pair<Val, Val> unpack(row::Dtype dtype, Val pair);

  // --- memory, in bytes
  Val at(Val pointer, Val bytes);
  Val at(Val pointer, int64_t bytes);
  Val load(mlir::Type type, Val pointer, int64_t alignment);
  Val loadVector(int64_t count, mlir::Type element, Val pointer); ///< aligned to its size
  void store(Val value, Val pointer, int64_t alignment);
  /// 4, 8 or 16 bytes from global to shared memory, both aligned to as many; where `exists` is
  /// false zeros, and nothing is read.
  void copyAsync(Val to, Val from, Val exists, int64_t bytes);
  void commitCopies();
  void waitCopies(); ///< for all of this thread's

  // --- warps, all of whose threads come by
  Val exchange(Val x, int64_t distance); ///< of the thread whose number differs in these bits
  Val from(Val x, Val lane);             ///< of that thread
  Val any(Val condition);
  Val quadSum(Val x);
  Val quadGreatest(Val x);
  /// The least or the greatest i32 of the warp.
  Val warpMinimum(Val x);
  Val warpMaximum(Val x);

  // --- control
  using Body = llvm::function_ref<void()>;
  void loop(Val low, Val high, const Variables &carried, llvm::function_ref<void(Val)> body);
  void when(Val condition, const Variables &assigned, Body body);

  mlir::OpBuilder &builder() { return b; }
  mlir::Location location() const { return loc; }
  mlir::Type i16() { return b.getI16Type(); }
  mlir::Type i32() { return k.v.i32; }
  mlir::Type f32() { return k.v.f32; }

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace gradc::codegen::gpu

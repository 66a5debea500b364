// Matrix products C (+)= A B as kernels of fixed shapes, with sums in f32.
//
// A task owns a block of C. For every slice of the depth it packs its columns of B and, a block of
// rows at a time, its rows of A into panels on the stack: the elements that one step of a register
// tile needs lie side by side there, whatever the strides of the matrices were. Then
//
//     for each panel of B (stays in the first cache)
//       for each panel of A (streams from the second cache)
//         a tile of C in registers, over the whole slice
//
// Packing and the tiles are functions that all products of a module share; what is printed for one
// product is a handful of calls.
//
// What is multiplied next is packed between the tiles (GemmAhead.h): its lines have come by then.
//
// Narrow operands are widened as they are packed, and multiplied by their scale where they have
// one; two of bf16 stay bf16, in pairs, on a target with their dot product. Between two slices the
// sums wait in C; a C that is narrower than f32 cannot hold them, so they wait in f32 on the task's
// stack, and each is rounded once, to nearest even, behind the last slice.
//
// Every element of C is the sum over the slices, in order, of sums over a slice's depth in order:
// the same bits for any order of the tasks and any number of threads. So is a C of four rows or
// fewer, which is made without packing and in an order of its own (GemmThin.h).
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/row/RowProgram.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace gradc::codegen {

/// What f32 operands are rounded to as they are packed: `tf32` keeps f32's exponent and 10 bits of
/// the mantissa (nearest, ties to even). A NaN stays one; a number too large becomes infinite.
enum class InputRounding : uint8_t { none, tf32 };

/// C is m x n, A is m x k, B is k x n, all of them `batch` times.
struct GemmSpec {
  /// Strides in elements. A batch stride of 0 uses the same matrix again, for A and B.
  struct Matrix {
    int64_t rowStride = 0, columnStride = 1, batchStride = 0;
    row::Dtype dtype = row::Dtype::f32; ///< each matrix its own; c not of fp8
    bool operator==(const Matrix &) const = default;
  };
  int64_t m = 0, n = 0, k = 0, batch = 1;
  Matrix a, b;             ///< one of the two strides is 1
  Matrix c;                ///< the column stride is 1
  bool accumulate = false; ///< C += A B, else C is only written; of C in f32 alone
  InputRounding roundInputs = InputRounding::none;
  /// A and B are multiplied by a number each, an f32 in memory; of fp8 alone, where powers of two
  /// round nothing.
  bool scaled = false;
  /// B lies in panels as they are multiplied (panelsOf): of `b` the element type alone is looked
  /// at.
  bool panelsB = false;
  /// Threads that the tasks are cut for; no bit of C depends on it.
  int64_t threads = 1;
  bool operator==(const GemmSpec &) const = default;
};

/// Empty, or what is wrong with the spec: its sizes, strides or types.
std::string verify(const GemmSpec &spec);

/// Tasks of the kernel; a function of the spec alone, the same for every instruction set.
int64_t gemmTaskCount(const GemmSpec &spec);

/// Buffers: A, B, where `scaled` the scales of both, and C, each aligned to its elements; C
/// overlaps no other. The extent is not looked at. Scratch is on the stack, under 2 MiB. `spec` has
/// passed verify.
mlir::func::FuncOp emitGemm(mlir::ModuleOp module, llvm::StringRef name, const GemmSpec &spec,
                            const CpuTarget &target);

} // namespace gradc::codegen

// Sums over rows, squares and everything.
#include "codegen/cpu/FoldRows.h"

#include "codegen/cpu/KernelFunction.h"
#include "codegen/kernels/Loops.h"
#include "codegen/kernels/Vectors.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen {

namespace {

/// Vectors of accumulators.
constexpr int64_t unroll = 4;

Value minimumIndex(const Vectors &v, Value x, Value y) {
  return arith::MinSIOp::create(v.builder, v.loc, x, y);
}
Value subtractIndex(const Vectors &v, Value x, Value y) {
  return arith::SubIOp::create(v.builder, v.loc, x, y);
}

/// Sums `count` vectors of columns from `column` over all rows.
void emitFoldColumns(const Vectors &v, const KernelArguments &arguments, int64_t columns,
                     Value column, int64_t count, Value mask) {
  SmallVector<Value> sums(count, v.constant(v.vectorOf(v.f32), 0.0));
  Value start = v.elementPointer(Dtype::f32, arguments.buffers[0], column);
  emitLoop(v.builder, v.loc, v.index(0), arguments.extent, v.index(1), sums,
           [&](Value row, SmallVectorImpl<Value> &current) {
             Value part = v.elementPointer(Dtype::f32, start, v.mulIndex(row, v.index(columns)));
             for (int64_t u = 0; u < count; ++u) {
               Value address = v.elementPointer(Dtype::f32, part, u * v.lanes);
               current[u] = v.add(current[u], v.loadVector(Dtype::f32, address, mask));
             }
           });
  Value out = v.elementPointer(Dtype::f32, arguments.buffers[1], column);
  for (int64_t u = 0; u < count; ++u)
    v.storeVector(Dtype::f32, sums[u], v.elementPointer(Dtype::f32, out, u * v.lanes), mask);
}

/// Loops over [first, last) in steps of `unroll` vectors, then of one masked vector; `body` prints
/// a step of `count` vectors.
void emitElements(
    const Vectors &v, Value first, Value last, SmallVectorImpl<Value> &carried,
    function_ref<void(Value at, int64_t count, Value mask, SmallVectorImpl<Value> &)> body) {
  Value step = v.index(unroll * v.lanes);
  Value whole = arith::DivSIOp::create(v.builder, v.loc, subtractIndex(v, last, first), step);
  Value full = v.addIndex(first, v.mulIndex(whole, step));
  emitLoop(v.builder, v.loc, first, full, step, carried,
           [&](Value at, SmallVectorImpl<Value> &current) { body(at, unroll, {}, current); });
  emitLoop(v.builder, v.loc, full, last, v.index(v.lanes), carried,
           [&](Value at, SmallVectorImpl<Value> &current) {
             body(at, 1, v.firstLanes(subtractIndex(v, last, at)), current);
           });
}

} // namespace

func::FuncOp emitFoldRows(OpBuilder &builder, ModuleOp module, StringRef name, int64_t columns,
                          const CpuTarget &target) {
  return emitKernelFunction(
      builder, module, name, {true, true}, [&](const KernelArguments &arguments) {
        Vectors v(builder, builder.getUnknownLoc(), target.vectors());
        Value first = v.mulIndex(arguments.task, v.index(foldColumnsPerTask));
        Value last =
            minimumIndex(v, v.addIndex(first, v.index(foldColumnsPerTask)), v.index(columns));
        SmallVector<Value> none;
        emitElements(v, first, last, none,
                     [&](Value at, int64_t count, Value mask, SmallVectorImpl<Value> &) {
                       emitFoldColumns(v, arguments, columns, at, count, mask);
                     });
      });
}

func::FuncOp emitChunkSquareSums(OpBuilder &builder, ModuleOp module, StringRef name,
                                 const CpuTarget &target) {
  return emitKernelFunction(
      builder, module, name, {true, true}, [&](const KernelArguments &arguments) {
        Vectors v(builder, builder.getUnknownLoc(), target.vectors());
        Value perTask = v.index(row::flatElementsPerTask);
        Value first = v.mulIndex(arguments.task, perTask);
        Value last = minimumIndex(v, v.addIndex(first, perTask), arguments.extent);
        SmallVector<Value> sums(unroll, v.constant(v.vectorOf(v.f32), 0.0));
        emitElements(v, first, last, sums,
                     [&](Value at, int64_t count, Value mask, SmallVectorImpl<Value> &current) {
                       Value start = v.elementPointer(Dtype::f32, arguments.buffers[0], at);
                       for (int64_t u = 0; u < count; ++u) {
                         Value address = v.elementPointer(Dtype::f32, start, u * v.lanes);
                         Value x = v.loadVector(Dtype::f32, address, mask);
                         current[u] = v.fma(x, x, current[u]);
                       }
                     });
        auto add = [&](Value x, Value y) { return v.add(x, y); };
        Value total = add(add(sums[0], sums[2]), add(sums[1], sums[3]));
        v.storeScalar(Dtype::f32, v.foldLanes(total, add),
                      v.elementPointer(Dtype::f32, arguments.buffers[1], arguments.task));
      });
}

func::FuncOp emitFoldAll(OpBuilder &builder, ModuleOp module, StringRef name,
                         const CpuTarget &target) {
  return emitKernelFunction(
      builder, module, name, {true, true}, [&](const KernelArguments &arguments) {
        Vectors v(builder, builder.getUnknownLoc(), target.vectors());
        Type wide = v.vectorOf(builder.getF64Type());
        SmallVector<Value> sums(unroll, v.constant(wide, 0.0));
        emitElements(v, v.index(0), arguments.extent, sums,
                     [&](Value at, int64_t count, Value mask, SmallVectorImpl<Value> &current) {
                       Value start = v.elementPointer(Dtype::f32, arguments.buffers[0], at);
                       for (int64_t u = 0; u < count; ++u) {
                         Value address = v.elementPointer(Dtype::f32, start, u * v.lanes);
                         Value x = v.loadVector(Dtype::f32, address, mask);
                         Value x64 = arith::ExtFOp::create(builder, v.loc, wide, x);
                         current[u] = v.add(current[u], x64);
                       }
                     });
        auto add = [&](Value x, Value y) { return v.add(x, y); };
        Value total = add(add(sums[0], sums[2]), add(sums[1], sums[3]));
        Value sum = arith::TruncFOp::create(builder, v.loc, v.f32, v.foldLanes(total, add));
        v.storeScalar(Dtype::f32, sum, arguments.buffers[1]);
      });
}

} // namespace gradc::codegen

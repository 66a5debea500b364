// Sums over rows, squares and everything.
#include "codegen/gpu/Sums.h"

#include "codegen/gpu/BlockPrinter.h"

using namespace mlir;
using gradc::row::Dtype;

namespace gradc::codegen::gpu {

namespace {

/// Accumulators of a thread, whose loads are on their way together.
constexpr int64_t unroll = 4;

/// Elements of a vector in a buffer that begins at a multiple of `alignment` bytes.
int64_t lanesOf(int64_t alignment) {
  return std::min(widestAccess, alignment) / row::byteSize(Dtype::f32);
}

/// The sum of one f64 of each thread, in thread 0: halves of the block, until one is left.
Value addThreads(BlockPrinter &k, Value x) {
  OpBuilder &b = k.builder();
  Type f64 = b.getF64Type();
  constexpr int64_t floatsOfDouble = 2;
  Value parts = k.shared(floatsOfDouble * k.threads());
  auto place = [&](Value thread) { return k.at(parts, k.mul(thread, floatsOfDouble)); };
  auto load = [&](Value thread) -> Value {
    return LLVM::LoadOp::create(b, k.location(), f64, place(thread));
  };
  LLVM::StoreOp::create(b, k.location(), x, place(k.thread()));
  for (int64_t half = k.threads() / 2; half >= 1; half /= 2) {
    k.barrier();
    k.ifTrue(k.less(k.thread(), k.index(half)), [&] {
      Value sum = k.v.add(load(k.thread()), load(k.add(k.thread(), half)));
      LLVM::StoreOp::create(b, k.location(), sum, place(k.thread()));
    });
  }
  return load(k.thread());
}

/// Elements [first, last) over the threads, `unroll` vectors a step and then element by element;
/// `add` returns a sum with one vector, or one element, more. First is a multiple of the lanes.
Value sumElements(BlockPrinter &k, Value first, Value last, Value buffer,
                  function_ref<Value(Value sum, Value x)> add) {
  Type f64 = k.builder().getF64Type();
  SmallVector<Value> sums(unroll, k.v.constant(k.v.vectorOf(f64), 0.0));
  int64_t stride = k.threads() * k.lanes(), step = unroll * stride;
  Value full = k.add(first, k.roundDown(k.sub(last, first), step));
  Value offset = k.mul(k.thread(), k.lanes());
  sums = k.forRange(first, full, step, sums, [&](Value at, ArrayRef<Value> current) {
    SmallVector<Value> loaded, next;
    for (int64_t u = 0; u < unroll; ++u)
      loaded.push_back(k.load(k.at(k.at(buffer, k.add(at, offset)), u * stride)));
    for (auto [sum, x] : llvm::zip_equal(current, loaded))
      next.push_back(add(sum, x));
    return next;
  });
  Value vector = k.v.add(k.v.add(sums[0], sums[2]), k.v.add(sums[1], sums[3]));
  Value sum = k.v.foldLanes(vector, [&](Value x, Value y) { return k.v.add(x, y); });
  return k.forRange(k.add(full, k.thread()), last, k.threads(), {sum},
                    [&](Value at, ArrayRef<Value> current) {
                      return SmallVector<Value>{add(current[0], k.loadFloat(k.at(buffer, at)))};
                    })[0];
}

/// Sums are f64: adding is little beside loading.
Value widened(BlockPrinter &k, Value x) {
  Type wide = k.v.shapedAs(k.builder().getF64Type(), x);
  return arith::ExtFOp::create(k.builder(), k.location(), wide, x);
}

/// Thread 0 stores what all threads' sums add up to.
void storeSum(BlockPrinter &k, Value sum, Value address) {
  Value total = addThreads(k, sum);
  k.ifTrue(k.equal(k.thread(), k.index(0)), [&] {
    k.store(arith::TruncFOp::create(k.builder(), k.location(), k.v.f32, total), address);
  });
}

} // namespace

KernelWork sumWork(int64_t elements, int64_t sums, int64_t flopsEach) {
  constexpr int64_t bytes = 4;
  KernelWork work;
  work.buffers = {{elements * bytes, 0}, {0, sums * bytes}};
  work.flops = work.leastFlops = elements * flopsEach;
  return work;
}

LLVM::LLVMFuncOp emitFoldRows(ModuleOp module, StringRef name, int64_t columns,
                              const GpuTarget &target) {
  constexpr int64_t groups = 8; // of rows: every eighth is one's
  BlockPrinter k(module, name, {true, true}, groups * foldColumnsPerTask, target.vectors(1));
  Value group = k.divide(k.thread(), foldColumnsPerTask);
  Value place = k.remainder(k.thread(), foldColumnsPerTask);
  Value column = k.add(k.mul(k.task(), foldColumnsPerTask), place);
  Value exists = k.less(column, k.index(columns));
  Value rows = k.select(exists, k.extent(), k.index(0));
  Value partials = k.at(k.buffers()[0], column);
  auto load = [&](Value row) { return k.loadFloat(k.at(partials, k.mul(row, columns))); };

  SmallVector<Value> sums(unroll, k.v.constant(k.v.f32, 0.0));
  Value full = k.roundDown(rows, unroll * groups);
  sums = k.forRange(k.index(0), full, unroll * groups, sums,
                    [&](Value first, ArrayRef<Value> current) {
                      SmallVector<Value> loaded, next;
                      for (int64_t u = 0; u < unroll; ++u)
                        loaded.push_back(load(k.add(k.add(first, group), u * groups)));
                      for (auto [sum, x] : llvm::zip_equal(current, loaded))
                        next.push_back(k.v.add(sum, x));
                      return next;
                    });
  Value sum = k.v.add(k.v.add(sums[0], sums[2]), k.v.add(sums[1], sums[3]));
  sum =
      k.forRange(k.add(full, group), rows, groups, {sum}, [&](Value row, ArrayRef<Value> current) {
        return SmallVector<Value>{k.v.add(current[0], load(row))};
      })[0];

  Value parts = k.shared(k.threads());
  k.store(sum, k.at(parts, k.thread()));
  k.barrier();
  k.ifTrue(k.less(k.thread(), k.select(exists, k.index(foldColumnsPerTask), k.index(0))), [&] {
    Value total = k.loadFloat(k.at(parts, place));
    for (int64_t other = 1; other < groups; ++other)
      total = k.v.add(total, k.loadFloat(k.at(k.at(parts, place), other * foldColumnsPerTask)));
    k.store(total, k.at(k.buffers()[1], column));
  });
  return k.finish();
}

LLVM::LLVMFuncOp emitChunkSquareSums(ModuleOp module, StringRef name, const GpuTarget &target,
                                     int64_t alignment) {
  constexpr int64_t threads = 256;
  BlockPrinter k(module, name, {true, true}, threads, target.vectors(lanesOf(alignment)));
  Value first = k.mul(k.task(), row::flatElementsPerTask);
  Value last = k.minimum(k.add(first, row::flatElementsPerTask), k.extent());
  Value sum = sumElements(k, first, last, k.buffers()[0], [&](Value total, Value x) {
    Value wide = widened(k, x);
    return k.v.fma(wide, wide, total);
  });
  storeSum(k, sum, k.at(k.buffers()[1], k.task()));
  return k.finish();
}

LLVM::LLVMFuncOp emitFoldAll(ModuleOp module, StringRef name, const GpuTarget &target,
                             int64_t alignment) {
  constexpr int64_t threads = 1024;
  BlockPrinter k(module, name, {true, true}, threads, target.vectors(lanesOf(alignment)));
  Value sum = sumElements(k, k.index(0), k.extent(), k.buffers()[0],
                          [&](Value total, Value x) { return k.v.add(total, widened(k, x)); });
  storeSum(k, sum, k.buffers()[1]);
  return k.finish();
}

} // namespace gradc::codegen::gpu

// See GemmThin.h.
#include "codegen/cpu/GemmThin.h"

#include "codegen/cpu/GemmPack.h"
#include "codegen/kernels/CeilDiv.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>

using namespace mlir;
namespace gradc::codegen {

namespace {

/// With more rows, what packing saves in arithmetic is worth more than what it costs.
constexpr int64_t mostRows = 4;
/// Bounds A, which lies on the stack in f32: 512 KiB.
constexpr int64_t mostElementsOfA = 128 * 1024;
/// Whole vectors of every target, and whole lines.
constexpr int64_t columnUnit = 64, mostColumns = 1024;
/// Elements of B that are worth a task.
constexpr int64_t leastTaskElements = 64 * 1024, mostTasks = 64;

} // namespace

bool isThin(const GemmSpec &s) { return s.m <= mostRows && s.m * s.k <= mostElementsOfA; }

int64_t thinColumns(const GemmSpec &s) {
  int64_t perMatrix = s.n * s.k;
  int64_t tasks = std::clamp<int64_t>(perMatrix * s.batch / leastTaskElements, 1, mostTasks);
  int64_t even = roundUp(ceilDiv(s.n, ceilDiv(tasks, s.batch)), columnUnit);
  return std::min(even, mostColumns);
}

namespace {

class ThinEmitter {
public:
  ThinEmitter(KernelBuilder &k, const GemmSpec &spec);
  void emit();

private:
  Value load(const GemmSpec::Matrix &matrix, Value address, Value mask) {
    Value scales = &matrix == &spec.a ? scaleOfA : scaleOfB;
    return loadOperand(k, packFormat(spec, matrix, /*transposed=*/false), address, mask, scales);
  }
  Value element(Value base, const GemmSpec::Matrix &matrix, Value row, Value column) {
    return k.v.elementPointer(
        matrix.dtype, base,
        k.add(k.mul(row, matrix.rowStride), k.mul(column, matrix.columnStride)));
  }
  /// body(first column, mask or null) for the vectors of the task's columns.
  void forVectors(llvm::function_ref<void(Value, Value)> body);
  void copyA();
  void clearSums();
  void addRows(Value step, int64_t steps);
  void addDots();
  void write();

  KernelBuilder &k;
  const GemmSpec &spec;
  int64_t width;            ///< columns of a task
  int64_t depth;            ///< of A's copy, whole vectors
  Value a, b, c;            ///< of this batch, B and C at the task's first column
  Value columns;            ///< of the task
  Value copyOfA, sums;      ///< f32: m x depth, m x width
  Value scaleOfA, scaleOfB; ///< vectors; null where the spec has none
};

ThinEmitter::ThinEmitter(KernelBuilder &k, const GemmSpec &spec)
    : k(k), spec(spec), width(thinColumns(spec)), depth(roundUp(spec.k, k.lanes())) {
  int64_t parts = ceilDiv(spec.n, width);
  Value batch = k.divide(k.task(), parts), first = k.mul(k.remainder(k.task(), parts), width);
  columns = k.minimum(k.sub(k.index(spec.n), first), width);
  auto ofBatch = [&](int buffer, const GemmSpec::Matrix &matrix) {
    return k.v.elementPointer(matrix.dtype, k.buffer(buffer), k.mul(batch, matrix.batchStride));
  };
  a = ofBatch(0, spec.a);
  b = element(ofBatch(1, spec.b), spec.b, k.index(0), first);
  c = element(ofBatch(spec.scaled ? 4 : 2, spec.c), spec.c, k.index(0), first);
  if (spec.scaled) {
    scaleOfA = k.v.splat(k.loadFloat(k.buffer(2)));
    scaleOfB = k.v.splat(k.loadFloat(k.buffer(3)));
  }
  copyOfA = k.stack(spec.m * depth);
  sums = k.stack(spec.m * width);
}

void ThinEmitter::emit() {
  copyA();
  if (spec.b.columnStride == 1) {
    constexpr int64_t unroll = 4;
    int64_t whole = spec.k / unroll * unroll;
    clearSums();
    k.forRange(0, whole, unroll, [&](Value step) { addRows(step, unroll); });
    k.forRange(whole, spec.k, 1, [&](Value step) { addRows(step, 1); });
  } else {
    addDots();
  }
  write();
}

void ThinEmitter::forVectors(llvm::function_ref<void(Value, Value)> body) {
  Value whole = k.roundDown(columns, k.lanes());
  k.forRange(0, whole, k.lanes(), [&](Value column) { body(column, {}); });
  k.ifTrue(k.less(whole, columns), [&] { body(whole, k.v.firstLanes(k.sub(columns, whole))); });
}

/// A by rows, widened and rounded, with zeros behind the depth.
void ThinEmitter::copyA() {
  int64_t whole = spec.k / k.lanes() * k.lanes();
  for (int64_t i = 0; i < spec.m; ++i) {
    Value to = k.at(copyOfA, i * depth);
    auto from = [&](Value step) { return element(a, spec.a, k.index(i), step); };
    auto last = [&] { return k.at(to, whole); };
    if (spec.a.columnStride == 1) {
      k.forRange(0, whole, k.lanes(),
                 [&](Value step) { k.store(load(spec.a, from(step), {}), k.at(to, step)); });
      if (whole < spec.k)
        k.store(load(spec.a, from(k.index(whole)), k.v.firstLanes(spec.k - whole)), last());
      continue;
    }
    if (whole < spec.k)
      k.store(k.reals(0), last());
    Value one = k.v.firstLanes(1);
    k.forRange(0, spec.k, 1, [&](Value step) {
      k.v.storeVector(row::Dtype::f32, load(spec.a, from(step), one), k.at(to, step), one);
    });
  }
}

void ThinEmitter::clearSums() {
  k.forRange(0, spec.m * width, k.lanes(), [&](Value i) { k.store(k.reals(0), k.at(sums, i)); });
}

/// Adds the products with some rows of B, which are read as that many streams.
void ThinEmitter::addRows(Value step, int64_t steps) {
  constexpr int64_t stepsAhead = 8;
  SmallVector<Value> rows, factors;
  for (int64_t u = 0; u < steps; ++u)
    rows.push_back(element(b, spec.b, k.add(step, u), k.index(0)));
  for (int64_t i = 0; i < spec.m; ++i)
    for (int64_t u = 0; u < steps; ++u)
      factors.push_back(k.v.splat(k.loadFloat(k.at(k.at(copyOfA, i * depth + u), step))));
  forVectors([&](Value column, Value mask) {
    SmallVector<Value> values;
    for (Value row : rows) {
      Value place = k.v.elementPointer(spec.b.dtype, row, column);
      values.push_back(load(spec.b, place, mask));
      prefetch(k, k.v.elementPointer(spec.b.dtype, place, k.index(stepsAhead * spec.b.rowStride)));
    }
    for (int64_t i = 0; i < spec.m; ++i) {
      Value place = k.at(k.at(sums, i * width), column), sum = k.load(place);
      for (int64_t u = 0; u < steps; ++u)
        sum = k.v.fma(factors[i * steps + u], values[u], sum);
      k.store(sum, place);
    }
  });
}

/// The sums, each the product of a row of A and a column of B. Some columns are read at a time, as
/// that many streams; those behind the last are the last again, and not written.
void ThinEmitter::addDots() {
  int64_t streams = spec.m <= 2 ? 4 : 2;
  int64_t whole = spec.k / k.lanes() * k.lanes();
  Value last = k.sub(columns, 1);
  // The same of the next columns: streams this short end before the processor has seen them.
  constexpr int64_t firstCacheHalf = 16 * 1024;
  int64_t distance = streams * spec.b.columnStride;
  bool fetchesNext = distance * row::byteSize(spec.b.dtype) <= firstCacheHalf;
  k.forRange(k.index(0), columns, streams, [&](Value column) {
    SmallVector<Value> starts;
    for (int64_t u = 0; u < streams; ++u)
      starts.push_back(element(b, spec.b, k.index(0), k.minimum(k.add(column, u), last)));
    auto step = [&](Value at, Value mask, ArrayRef<Value> before) {
      SmallVector<Value> after(before);
      SmallVector<Value> values;
      for (Value start : starts) {
        Value place = k.v.elementPointer(spec.b.dtype, start, at);
        values.push_back(load(spec.b, place, mask));
        if (fetchesNext)
          prefetch(k, k.v.elementPointer(spec.b.dtype, place, k.index(distance)));
      }
      for (int64_t i = 0; i < spec.m; ++i) {
        Value factors = k.load(k.at(k.at(copyOfA, i * depth), at));
        for (int64_t u = 0; u < streams; ++u)
          after[i * streams + u] = k.v.fma(factors, values[u], after[i * streams + u]);
      }
      return after;
    };
    SmallVector<Value> totals(spec.m * streams, k.reals(0));
    totals = k.forRange(k.index(0), k.index(whole), k.lanes(), totals,
                        [&](Value at, ArrayRef<Value> before) { return step(at, {}, before); });
    if (whole < spec.k)
      totals = step(k.index(whole), k.v.firstLanes(spec.k - whole), totals);
    for (int64_t i = 0; i < spec.m; ++i)
      for (int64_t u = 0; u < streams; ++u)
        k.store(k.sumLanes(totals[i * streams + u]), k.at(k.at(sums, i * width + u), column));
  });
}

void ThinEmitter::write() {
  for (int64_t i = 0; i < spec.m; ++i)
    forVectors([&](Value column, Value mask) {
      Value place = element(c, spec.c, k.index(i), column);
      Value sum = k.load(k.at(k.at(sums, i * width), column));
      if (spec.accumulate)
        sum = k.v.add(k.v.loadVector(spec.c.dtype, place, mask), sum);
      k.v.storeVector(spec.c.dtype, sum, place, mask);
    });
}

} // namespace

void emitThinProduct(KernelBuilder &k, const GemmSpec &spec) { ThinEmitter(k, spec).emit(); }

} // namespace gradc::codegen

// See AttentionOperands.h.
#include "codegen/cpu/AttentionOperands.h"
#include "codegen/cpu/Transpose.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <bit>

using namespace mlir;
namespace gradc::codegen {

HeadRows headRows(KernelBuilder &k, Value buffer, const AttentionSpec::Strides &strides,
                  Value batch, Value head) {
  Value offset = k.add(k.mul(batch, strides.batch), k.mul(head, strides.head));
  return {k.at(buffer, offset), strides.token};
}

/// Elements of the vector at `column` that belong to the head.
static int64_t vectorCount(KernelBuilder &k, const AttentionTiling &tiling, int64_t column) {
  return std::min(k.lanes(), tiling.headDim - column);
}

/// Calls the packing function `name` with (i64 first, end, rows; ptr from, to), made where it is
/// missing by `body`, which returns the function's results.
static func::CallOp
callPacking(KernelBuilder &k, const std::string &name, TypeRange results, const HeadRows &from,
            const RowRange &range, Value to,
            llvm::function_ref<SmallVector<Value>(KernelBuilder &, const HeadRows &,
                                                  const RowRange &, Value)>
                body) {
  auto function = k.module().lookupSymbol<func::FuncOp>(name);
  if (!function) {
    Type i64 = k.builder().getI64Type(), pointer = k.pointerType();
    KernelBuilder inner(k.module(), name, k.target(),
                        k.builder().getFunctionType({i64, i64, i64, pointer, pointer}, results));
    RowRange innerRange{inner.parameter(0), inner.parameter(1), inner.parameter(2)};
    function = inner.finish(
        body(inner, {inner.parameter(3), from.stride}, innerRange, inner.parameter(4)));
  }
  return func::CallOp::create(k.builder(), k.location(), function,
                              ValueRange{range.first, range.end, range.rows, from.base, to});
}

static SmallVector<Value> emitPackRows(KernelBuilder &k, const AttentionTiling &tiling,
                                       const HeadRows &from, const RowRange &range, double factor,
                                       Value to) {
  Value live = k.maximum(k.minimum(range.rows, k.sub(range.end, range.first)), 0);
  auto probe = k.forRange(k.index(0), live, 1, k.reals(0), [&](Value i, ArrayRef<Value> carried) {
    Value source = k.at(from.base, k.mul(k.add(range.first, i), from.stride));
    Value row = k.at(to, k.mul(i, tiling.width)), probe = carried[0];
    for (int64_t column = 0; column < tiling.width; column += k.lanes()) {
      Value x = k.loadFirst(k.at(source, column), vectorCount(k, tiling, column));
      probe = k.v.fma(x, k.reals(0), probe);
      k.store(factor == 1 ? x : k.v.mul(x, k.reals(factor)), k.at(row, column));
    }
    return SmallVector<Value>{probe};
  });
  zeroScratch(k, k.at(to, k.mul(live, tiling.width)), k.mul(k.sub(range.rows, live), tiling.width));
  return {k.isNan(k.sumLanes(probe[0]))};
}

Value packRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
               const RowRange &range, double factor, Value to) {
  std::string name = llvm::formatv("gradc.pack_{0}x{1}_s{2}_f{3:x}", tiling.headDim, k.lanes(),
                                   from.stride, std::bit_cast<uint64_t>(factor));
  auto call = callPacking(
      k, name, k.builder().getI1Type(), from, range, to,
      [&](KernelBuilder &inner, const HeadRows &source, const RowRange &rows, Value target) {
        return emitPackRows(inner, tiling, source, rows, factor, target);
      });
  return call.getResult(0);
}

static void emitPackTransposed(KernelBuilder &k, const AttentionTiling &tiling,
                               const HeadRows &from, const RowRange &range, Value to) {
  int64_t lanes = k.lanes(), panel = tiling.panel;
  // Rows that do not exist are read from the last that does, and replaced.
  Value last = k.sub(range.end, 1), zero = k.reals(0);
  k.forRange(k.index(0), range.rows, lanes, [&](Value key) {
    SmallVector<Value> sources, exists;
    for (int64_t i = 0; i < lanes; ++i) {
      Value row = k.add(k.add(range.first, key), i);
      exists.push_back(k.less(row, range.end));
      sources.push_back(k.at(from.base, k.mul(k.minimum(row, last), from.stride)));
    }
    Value place =
        k.at(to, k.add(k.mul(k.roundDown(key, panel), tiling.depth), k.remainder(key, panel)));
    auto square = [&](Value column, int64_t count, int64_t stored) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < lanes; ++i) {
        Value x = k.loadFirst(k.at(sources[i], column), count);
        rows.push_back(k.select(exists[i], x, zero));
      }
      transposeSquare(k, rows);
      for (int64_t i = 0; i < stored; ++i)
        k.store(rows[i], k.at(k.at(place, k.mul(column, panel)), i * panel));
    };
    int64_t whole = tiling.headDim / lanes * lanes;
    k.forRange(0, whole, lanes, [&](Value column) { square(column, lanes, lanes); });
    if (whole < tiling.headDim)
      square(k.index(whole), tiling.headDim - whole, tiling.depth - whole);
  });
}

void packTransposed(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                    const RowRange &range, Value to) {
  std::string name =
      llvm::formatv("gradc.transpose_{0}x{1}_s{2}", tiling.headDim, k.lanes(), from.stride);
  callPacking(k, name, {}, from, range, to,
              [&](KernelBuilder &inner, const HeadRows &source, const RowRange &rows,
                  Value target) -> SmallVector<Value> {
                emitPackTransposed(inner, tiling, source, rows, target);
                return {};
              });
}

void zeroScratch(KernelBuilder &k, Value scratch, Value floats) {
  k.forRange(0, floats, k.lanes(), [&](Value i) { k.store(k.reals(0), k.at(scratch, i)); });
}

void storeHeadRow(KernelBuilder &k, const AttentionTiling &tiling, Value row,
                  llvm::function_ref<Value(int64_t, int64_t)> value) {
  for (int64_t column = 0; column < tiling.width; column += k.lanes()) {
    int64_t count = vectorCount(k, tiling, column);
    k.storeFirst(value(column, count), k.at(row, column), count);
  }
}

} // namespace gradc::codegen

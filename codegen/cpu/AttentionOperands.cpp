// See AttentionOperands.h.
#include "codegen/cpu/AttentionOperands.h"
#include "codegen/cpu/Transpose.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <bit>

using namespace mlir;
namespace gradc::codegen {

Value HeadRows::row(KernelBuilder &k, Value token) const {
  Value place = first ? k.sub(token, first) : token;
  return k.v.elementPointer(dtype, base, k.mul(place, stride));
}
Value HeadRows::at(KernelBuilder &k, Value row, Value column) const {
  return k.v.elementPointer(dtype, row, column);
}
Value HeadRows::load(KernelBuilder &k, Value address, int64_t count) const {
  return k.v.loadVector(dtype, address, count < k.lanes() ? k.v.firstLanes(count) : Value());
}

HeadRows headRows(KernelBuilder &k, Value buffer, const AttentionSpec &spec,
                  const AttentionSpec::Strides &strides, Value batch, Value head) {
  Value offset = k.add(k.mul(batch, strides.batch), k.mul(head, strides.head));
  return {k.v.elementPointer(spec.dtype, buffer, offset), strides.token, spec.dtype, {}};
}

HeadRows gatheringRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &output,
                       Value first, int64_t rows) {
  if (output.dtype == row::Dtype::f32)
    return output;
  return {k.stack(rows * tiling.width), tiling.width, row::Dtype::f32, first};
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
    HeadRows innerFrom{inner.parameter(3), from.stride, from.dtype, {}};
    function = inner.finish(body(inner, innerFrom, innerRange, inner.parameter(4)));
  }
  return func::CallOp::create(k.builder(), k.location(), function,
                              ValueRange{range.first, range.end, range.rows, from.base, to});
}

static std::string packingName(KernelBuilder &k, llvm::StringRef what,
                               const AttentionTiling &tiling, const HeadRows &from) {
  return llvm::formatv("gradc.{0}_{1}x{2}_t{3}_s{4}", what, tiling.headDim, k.lanes(),
                       static_cast<int>(from.dtype), from.stride);
}

/// The probe adds up zeros, or NaN for each element that is not finite.
static SmallVector<Value> emitPackRows(KernelBuilder &k, const AttentionTiling &tiling,
                                       const HeadRows &from, const RowRange &range, double factor,
                                       bool finite, Value to) {
  Value live = k.maximum(k.minimum(range.rows, k.sub(range.end, range.first)), 0);
  Value zero = k.reals(0);
  auto probe = k.forRange(k.index(0), live, 1, zero, [&](Value i, ArrayRef<Value> carried) {
    Value source = from.row(k, k.add(range.first, i)), probe = carried[0];
    Value row = k.at(to, k.mul(i, tiling.width));
    forHeadVectors(k, tiling, [&](int64_t column, int64_t count) {
      Value x = from.load(k, from.at(k, source, k.index(column)), count);
      if (factor != 1)
        x = k.v.mul(x, k.reals(factor));
      if (finite)
        x = k.select(k.equalF(k.v.mul(x, zero), zero), x, zero);
      else
        probe = k.v.fma(x, zero, probe);
      k.store(x, k.at(row, column));
    });
    return SmallVector<Value>{probe};
  });
  zeroScratch(k, k.at(to, k.mul(live, tiling.width)), k.mul(k.sub(range.rows, live), tiling.width));
  return {k.isNan(k.sumLanes(probe[0]))};
}

static Value callPackRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                          const RowRange &range, double factor, bool finite, Value to) {
  std::string name =
      llvm::formatv("{0}_f{1:x}", packingName(k, finite ? "pack_finite" : "pack", tiling, from),
                    std::bit_cast<uint64_t>(factor));
  auto call = callPacking(
      k, name, k.builder().getI1Type(), from, range, to,
      [&](KernelBuilder &inner, const HeadRows &source, const RowRange &rows, Value target) {
        return emitPackRows(inner, tiling, source, rows, factor, finite, target);
      });
  return call.getResult(0);
}

Value packRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
               const RowRange &range, double factor, Value to) {
  return callPackRows(k, tiling, from, range, factor, /*finite=*/false, to);
}
void packFiniteRows(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                    const RowRange &range, double factor, Value to) {
  callPackRows(k, tiling, from, range, factor, /*finite=*/true, to);
}

static SmallVector<Value> emitPackTransposed(KernelBuilder &k, const AttentionTiling &tiling,
                                             const HeadRows &from, const RowRange &range,
                                             Value to) {
  int64_t lanes = k.lanes(), panel = tiling.panel;
  // Rows that do not exist are read from the last that does, and replaced.
  Value last = k.sub(range.end, 1), zero = k.reals(0);
  auto ofRows = [&](Value key, ArrayRef<Value> carried) {
    SmallVector<Value> sources, exists;
    for (int64_t i = 0; i < lanes; ++i) {
      Value row = k.add(k.add(range.first, key), i);
      exists.push_back(k.less(row, range.end));
      sources.push_back(from.row(k, k.minimum(row, last)));
    }
    Value place =
        k.at(to, k.add(k.mul(k.roundDown(key, panel), tiling.depth), k.remainder(key, panel)));
    auto square = [&](Value column, int64_t count, int64_t stored, Value probe) {
      SmallVector<Value> rows;
      for (int64_t i = 0; i < lanes; ++i) {
        Value x = from.load(k, from.at(k, sources[i], column), count);
        rows.push_back(k.select(exists[i], x, zero));
        probe = k.v.fma(rows.back(), zero, probe);
      }
      transposeSquare(k, rows);
      for (int64_t i = 0; i < stored; ++i)
        k.store(rows[i], k.at(k.at(place, k.mul(column, panel)), i * panel));
      return SmallVector<Value>{probe};
    };
    int64_t whole = tiling.headDim / lanes * lanes;
    auto probe = k.forRange(k.index(0), k.index(whole), lanes, carried,
                            [&](Value column, ArrayRef<Value> probe) {
                              return square(column, lanes, lanes, probe[0]);
                            });
    if (whole < tiling.headDim)
      probe = square(k.index(whole), tiling.headDim - whole, tiling.depth - whole, probe[0]);
    return probe;
  };
  auto probe = k.forRange(k.index(0), range.rows, lanes, zero, ofRows);
  return {k.isNan(k.sumLanes(probe[0]))};
}

Value packTransposed(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &from,
                     const RowRange &range, Value to) {
  auto call = callPacking(
      k, packingName(k, "transpose", tiling, from), k.builder().getI1Type(), from, range, to,
      [&](KernelBuilder &inner, const HeadRows &source, const RowRange &rows, Value target) {
        return emitPackTransposed(inner, tiling, source, rows, target);
      });
  return call.getResult(0);
}

void zeroScratch(KernelBuilder &k, Value scratch, Value floats) {
  k.forRange(0, floats, k.lanes(), [&](Value i) { k.store(k.reals(0), k.at(scratch, i)); });
}

void forHeadVectors(KernelBuilder &k, const AttentionTiling &tiling,
                    llvm::function_ref<void(int64_t, int64_t)> body) {
  for (int64_t column = 0; column < tiling.width; column += k.lanes())
    body(column, std::min(k.lanes(), tiling.headDim - column));
}

void storeHeadRow(KernelBuilder &k, const AttentionTiling &tiling, const HeadRows &rows,
                  Value token, llvm::function_ref<Value(int64_t, Value, int64_t)> value) {
  Value row = rows.row(k, token);
  forHeadVectors(k, tiling, [&](int64_t column, int64_t count) {
    Value address = rows.at(k, row, k.index(column));
    Value mask = count < k.lanes() ? k.v.firstLanes(count) : Value();
    k.v.storeVector(rows.dtype, value(column, address, count), address, mask);
  });
}

} // namespace gradc::codegen

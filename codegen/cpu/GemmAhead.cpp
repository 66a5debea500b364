// See GemmAhead.h.
#include "codegen/cpu/GemmAhead.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
namespace gradc::codegen {

SmallVector<Type> PackArguments::types(KernelBuilder &k) {
  Type i64 = k.builder().getI64Type();
  return {packFunctionType(k),     k.pointerType(), i64, i64, i64, i64,
          k.builder().getI1Type(), k.v.f32};
}

SmallVector<Value> PackArguments::values(KernelBuilder &k, const PackSource &source,
                                         int64_t width) {
  auto function = packFunction(k, source.format, width);
  OpBuilder &b = k.builder();
  return {func::ConstantOp::create(b, k.location(), function.getFunctionType(),
                                   FlatSymbolRefAttr::get(function)),
          source.from,
          k.index(source.stride),
          k.index(row::byteSize(source.format.dtype)),
          source.depth,
          source.count,
          arith::ConstantOp::create(b, k.location(), b.getBoolAttr(source.format.transposed)),
          scaleOf(k, source)};
}

PackArguments PackArguments::of(KernelBuilder &k, int firstParameter) {
  auto next = [&] { return k.parameter(firstParameter++); };
  PackArguments source;
  for (Value *argument : {&source.function, &source.from, &source.stride, &source.elementBytes,
                          &source.depth, &source.count, &source.transposed, &source.scale})
    *argument = next();
  return source;
}

void PackArguments::pack(KernelBuilder &k, Value depth, Value count, Value from, Value to,
                         Value panelStride) const {
  func::CallIndirectOp::create(k.builder(), k.location(), function,
                               ValueRange{depth, count, stride, from, to, panelStride, scale});
}

Value byteAt(KernelBuilder &k, Value base, Value bytes) {
  return LLVM::GEPOp::create(k.builder(), k.location(), k.pointerType(), k.builder().getI8Type(),
                             base, ValueRange{bytes});
}

void FetchedLines::fetch(KernelBuilder &k, Value low, Value high) const {
  k.forRange(low, high, 1, [&](Value line) {
    Value start = byteAt(k, from, k.mul(line, stride));
    k.forRange(0, length, cacheLineBytes, [&](Value i) { prefetch(k, byteAt(k, start, i)); });
  });
}

namespace {
constexpr int64_t paceUnit = 1 << 16;
} // namespace

NextPanels::NextPanels(KernelBuilder &k, const PackArguments &source, Value to, int64_t width,
                       bool pairs, Value tiles)
    : k(k), source(source),
      lines{source.from, source.strideBytes(k), source.lines(k), source.lineBytes(k)}, to(to) {
  auto ofKind = [&](Value panel, Value steps) { return k.select(source.transposed, panel, steps); };
  int64_t steps = k.lanes() * stepsTogether(pairs);
  stride = panelStride(k, width, paddedDepth(k, source.depth, pairs));
  items = ofKind(k.ceilDivide(source.count, width), k.ceilDivide(source.depth, steps));
  itemLines = ofKind(k.index(width), k.index(steps));
  itemStride = ofKind(stride, k.index(k.lanes() * width));
  pace = arith::DivUIOp::create(k.builder(), k.location(), k.mul(items, paceUnit), tiles);
}

SmallVector<Value> NextPanels::advance(ArrayRef<Value> carried) {
  auto line = [&](Value position) {
    return k.minimum(k.divide(k.mul(position, itemLines), paceUnit), lines.lines);
  };
  Value position = k.add(carried[0], pace);
  lines.fetch(k, line(carried[0]), line(position));
  // The last item whose lines were asked for is still on its way.
  Value ready = k.maximum(k.sub(k.divide(position, paceUnit), 1), carried[1]);
  packItems(carried[1], ready);
  return {position, ready};
}

void NextPanels::packItems(Value low, Value high) {
  k.forRange(low, high, 1, [&](Value item) {
    Value first = k.mul(item, itemLines);
    Value some = k.minimum(k.sub(lines.lines, first), itemLines);
    source.pack(k, k.select(source.transposed, source.depth, some),
                k.select(source.transposed, some, source.count),
                byteAt(k, source.from, k.mul(first, lines.stride)),
                k.at(to, k.mul(item, itemStride)), stride);
  });
}

} // namespace gradc::codegen

// See GemmPack.h.
#include "codegen/cpu/GemmPack.h"
#include "codegen/cpu/Transpose.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir;
namespace gradc::codegen {

Value panelStride(KernelBuilder &k, int64_t width, Value paddedDepth) {
  return k.add(k.mul(paddedDepth, width), panelGap);
}
Value paddedDepth(KernelBuilder &k, Value depth) { return k.roundUp(depth, k.lanes()); }

namespace {

constexpr int64_t lineFloats = 16;
/// How many steps ahead a copy fetches what it reads.
constexpr int64_t stepsAhead = 8;

void prefetch(KernelBuilder &k, Value address) {
  LLVM::Prefetch::create(k.builder(), k.location(), address, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

/// Prints the body of one of the packing functions.
class PackEmitter {
public:
  PackEmitter(KernelBuilder &k, int64_t width)
      : k(k), width(width), depth(k.parameter(0)), count(k.parameter(1)), stride(k.parameter(2)),
        from(k.parameter(3)), to(k.parameter(4)), padded(paddedDepth(k, depth)) {}
  void emitCopy();
  void emitTransposed();

private:
  int64_t vectors() const { return (width + k.lanes() - 1) / k.lanes(); }
  /// Elements of the vector `v` of a panel's step that are of this panel.
  int64_t ownLanes(int64_t v) const { return std::min(k.lanes(), width - v * k.lanes()); }
  /// Calls body(first row of the panel, address of the panel) for the panels of [0, rows).
  void forPanels(Value rows, llvm::function_ref<void(Value, Value)> body);
  void copySteps(Value step, int64_t steps);
  void zeroStep(Value step);
  void squares(Value panel, ArrayRef<Value> rows, Value step, Value mask);

  KernelBuilder &k;
  int64_t width;
  Value depth, count, stride, from, to, padded;
};

void PackEmitter::forPanels(Value rows, llvm::function_ref<void(Value, Value)> body) {
  Value next = panelStride(k, width, padded);
  k.forRange(k.index(0), rows, width, to, [&](Value first, ArrayRef<Value> carried) {
    body(first, carried[0]);
    return SmallVector<Value>{k.at(carried[0], next)};
  });
}

/// Some steps of every panel: few enough to read the rows as that many streams, enough to write
/// whole lines of cache.
void PackEmitter::copySteps(Value step, int64_t steps) {
  SmallVector<Value> rows;
  for (int64_t u = 0; u < steps; ++u)
    rows.push_back(k.at(from, k.mul(k.add(step, u), stride)));
  auto copy = [&](Value first, Value panel, llvm::function_ref<Value(Value, int64_t)> load) {
    SmallVector<Value> values;
    for (Value row : rows)
      for (int64_t v = 0; v < vectors(); ++v)
        values.push_back(load(k.at(k.at(row, first), v * k.lanes()), v));
    Value place = k.at(panel, k.mul(step, width));
    // A vector may run into the next step's place: that is written after it.
    for (int64_t u = 0; u < steps; ++u)
      for (int64_t v = 0; v < vectors(); ++v)
        k.store(values[u * vectors() + v], k.at(place, u * width + v * k.lanes()));
  };
  Value whole = k.roundDown(count, width);
  SmallVector<Value> ahead;
  for (int64_t u = 0; u < steps; ++u)
    ahead.push_back(k.at(rows[u], k.mul(stride, stepsAhead)));
  forPanels(whole, [&](Value first, Value panel) {
    for (Value row : ahead)
      for (int64_t i = 0; i < width; i += lineFloats)
        prefetch(k, k.at(k.at(row, first), i));
    copy(first, panel, [&](Value address, int64_t v) { return k.loadFirst(address, ownLanes(v)); });
  });
  k.ifTrue(k.less(whole, count), [&] {
    Value panel = k.at(to, k.mul(k.divide(whole, width), panelStride(k, width, padded)));
    copy(whole, panel, [&](Value address, int64_t v) {
      Value mask = k.v.firstLanes(k.sub(k.sub(count, whole), v * k.lanes()));
      return k.v.loadVector(row::Dtype::f32, address, mask);
    });
  });
}

void PackEmitter::zeroStep(Value step) {
  forPanels(count, [&](Value, Value panel) {
    for (int64_t v = 0; v < vectors(); ++v)
      k.store(k.reals(0), k.at(k.at(panel, k.mul(step, width)), v * k.lanes()));
  });
}

void PackEmitter::emitCopy() {
  constexpr int64_t unroll = 4;
  Value whole = k.roundDown(depth, unroll);
  k.forRange(0, whole, unroll, [&](Value step) { copySteps(step, unroll); });
  k.forRange(whole, depth, 1, [&](Value step) { copySteps(step, 1); });
  k.forRange(depth, padded, 1, [&](Value step) { zeroStep(step); });
}

/// As many steps as there are lanes, of one panel whose rows start at `rows`.
void PackEmitter::squares(Value panel, ArrayRef<Value> rows, Value step, Value mask) {
  Value place = k.at(panel, k.mul(step, width));
  // Later vectors first: where one runs into the next step's place, that is written after it.
  for (int64_t v = vectors(); v-- > 0;) {
    SmallVector<Value> square(k.lanes());
    for (int64_t i = 0; i < k.lanes(); ++i)
      square[i] = i < ownLanes(v)
                      ? k.v.loadVector(row::Dtype::f32, k.at(rows[v * k.lanes() + i], step), mask)
                      : Value(LLVM::PoisonOp::create(k.builder(), k.location(), k.vectorType()));
    for (int64_t i = 0; i < ownLanes(v); ++i) // the same of the next panel
      prefetch(k, k.at(k.at(rows[v * k.lanes() + i], step), k.mul(stride, width)));
    transposeSquare(k, square);
    for (int64_t u = 0; u < k.lanes(); ++u)
      k.store(square[u], k.at(place, u * width + v * k.lanes()));
  }
}

void PackEmitter::emitTransposed() {
  Value whole = k.roundDown(depth, k.lanes()), last = k.sub(count, 1);
  forPanels(count, [&](Value first, Value panel) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < width; ++i)
      rows.push_back(k.at(from, k.mul(k.minimum(k.add(first, i), last), stride)));
    k.forRange(0, whole, k.lanes(), [&](Value step) { squares(panel, rows, step, {}); });
    k.ifTrue(k.less(whole, depth),
             [&] { squares(panel, rows, whole, k.v.firstLanes(k.sub(depth, whole))); });
  });
}

/// The function (i64 depth, i64 count, i64 stride, ptr from, ptr to), made where it is missing.
func::FuncOp packFunction(KernelBuilder &k, int64_t width, bool transposed) {
  std::string name =
      llvm::formatv("gradc.gemm_pack_{0}{1}", width, transposed ? "_transposed" : "").str();
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  Type i64 = k.builder().getI64Type(), pointer = k.pointerType();
  KernelBuilder pack(k.module(), name, k.target(),
                     k.builder().getFunctionType({i64, i64, i64, pointer, pointer}, {}));
  if (transposed)
    PackEmitter(pack, width).emitTransposed();
  else
    PackEmitter(pack, width).emitCopy();
  return pack.finish();
}

} // namespace

void callPack(KernelBuilder &k, int64_t width, const PackSource &source, Value to) {
  func::CallOp::create(
      k.builder(), k.location(), packFunction(k, width, source.transposed),
      ValueRange{source.depth, source.count, k.index(source.stride), source.from, to});
}

} // namespace gradc::codegen

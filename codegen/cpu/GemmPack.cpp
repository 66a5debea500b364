// See GemmPack.h.
#include "codegen/cpu/GemmPack.h"
#include "codegen/cpu/Transpose.h"
#include "codegen/kernels/CeilDiv.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir;
namespace gradc::codegen {

Value panelStride(KernelBuilder &k, int64_t width, Value paddedDepth) {
  return k.add(k.mul(paddedDepth, width), panelGap);
}
Value paddedDepth(KernelBuilder &k, Value depth, bool pairs) {
  return k.roundUp(pairs ? k.divide(k.add(depth, 1), 2) : depth, k.lanes());
}
bool takesPairs(const GemmSpec &spec, const CpuTarget &target) {
  return target.pairsBf16 && spec.a.dtype == row::Dtype::bf16 && spec.b.dtype == row::Dtype::bf16;
}

namespace {

/// How many steps ahead a copy fetches what it reads.
constexpr int64_t stepsAhead = 8;

/// Half a unit of tf32 (one less where the kept part is even) carries exactly when the number is to
/// be rounded up. The carry would turn some NaNs into zeros.
Value roundToTf32(KernelBuilder &k, Value x) {
  constexpr int64_t droppedBits = 13;
  OpBuilder &b = k.builder();
  Location loc = k.location();
  VectorType type = k.v.vectorOf(k.v.i32);
  auto constant = [&](int64_t value) { return k.v.constant(type, static_cast<double>(value)); };
  Value bits = arith::BitcastOp::create(b, loc, type, x);
  Value odd = arith::AndIOp::create(
      b, loc, arith::ShRUIOp::create(b, loc, bits, constant(droppedBits)), constant(1));
  Value half = arith::AddIOp::create(b, loc, odd, constant((1 << (droppedBits - 1)) - 1));
  Value kept = arith::AndIOp::create(b, loc, arith::AddIOp::create(b, loc, bits, half),
                                     constant(-(1 << droppedBits)));
  return k.select(k.isNan(x), x, arith::BitcastOp::create(b, loc, k.vectorType(), kept));
}

} // namespace

PackFormat packFormat(const GemmSpec &spec, const GemmSpec::Matrix &operand, bool transposed) {
  bool isF32 = operand.dtype == row::Dtype::f32;
  return {transposed, operand.dtype, isF32 ? spec.roundInputs : InputRounding::none, spec.scaled};
}

Value loadOperand(KernelBuilder &k, const PackFormat &format, Value address, Value mask,
                  Value scales) {
  Value x = k.v.loadVector(format.dtype, address, mask);
  if (scales)
    x = k.v.mul(x, scales);
  return format.rounding == InputRounding::tf32 ? roundToTf32(k, x) : x;
}

void prefetch(KernelBuilder &k, Value address) {
  LLVM::Prefetch::create(k.builder(), k.location(), address, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

namespace {

/// Prints the body of one of the packing functions.
class PackEmitter {
public:
  PackEmitter(KernelBuilder &k, const PackFormat &format, int64_t width)
      : k(k), format(format), width(width), depth(k.parameter(0)), count(k.parameter(1)),
        stride(k.parameter(2)), from(k.parameter(3)), to(k.parameter(4)), nextPanel(k.parameter(5)),
        padded(paddedDepth(k, depth, format.pairs)) {
    if (format.scaled)
      scales = k.v.splat(k.parameter(6));
  }
  void emit() { format.transposed ? emitTransposed() : emitCopy(); }

private:
  void emitCopy();
  void emitTransposed();
  int64_t vectors() const { return ceilDiv(width, k.lanes()); }
  /// Elements of the vector `v` of a panel's step that are of this panel.
  int64_t ownLanes(int64_t v) const { return std::min(k.lanes(), width - v * k.lanes()); }
  Value source(Value base, Value elements) {
    return k.v.elementPointer(format.dtype, base, elements);
  }
  Value source(Value base, int64_t elements) {
    return k.v.elementPointer(format.dtype, base, elements);
  }
  Value load(Value address, Value mask) { return loadOperand(k, format, address, mask, scales); }
  int64_t together() const { return stepsTogether(format.pairs); }
  /// A vector of a panel's step, from the row of the source at `row` and, of a pair, the next.
  Value loadAcross(Value row, Value element, Value mask, bool wholePair);
  /// Steps of a panel that lie along a row of the source: as many as lanes, or those of `live`
  /// elements.
  Value loadAlong(Value address, Value live);
  /// Calls body(first row of the panel, address of the panel) for the panels of [low, high), where
  /// low begins a panel.
  void forPanels(Value low, Value high, llvm::function_ref<void(Value, Value)> body);
  void copySteps(Value step, int64_t steps, bool wholePairs = true);
  void zeroStep(Value step);
  void squares(Value panel, ArrayRef<Value> rows, Value step, Value live);

  KernelBuilder &k;
  PackFormat format;
  int64_t width;
  Value depth, count, stride, from, to, nextPanel, padded;
  Value scales; ///< a vector, or null
};

void PackEmitter::forPanels(Value low, Value high, llvm::function_ref<void(Value, Value)> body) {
  Value start = k.at(to, k.mul(k.divide(low, width), nextPanel));
  k.forRange(low, high, width, start, [&](Value first, ArrayRef<Value> carried) {
    body(first, carried[0]);
    return SmallVector<Value>{k.at(carried[0], nextPanel)};
  });
}

Value PackEmitter::loadAcross(Value row, Value element, Value mask, bool wholePair) {
  Value first = load(source(row, element), mask);
  if (!format.pairs)
    return first;
  Value second = wholePair ? load(source(source(row, stride), element), mask) : k.reals(0);
  return k.v.pairBf16(first, second);
}

Value PackEmitter::loadAlong(Value address, Value live) {
  if (!format.pairs)
    return load(address, live ? k.v.firstLanes(live) : Value());
  if (!live)
    return k.load(address); // pairs lie side by side as they are
  Value low = load(address, k.v.firstLanes(live));
  Value high = load(source(address, k.lanes()), k.v.firstLanes(k.sub(live, k.lanes())));
  SmallVector<int64_t> even, odd;
  for (int64_t lane = 0; lane < k.lanes(); ++lane) {
    even.push_back(2 * lane);
    odd.push_back(2 * lane + 1);
  }
  auto elements = [&](ArrayRef<int64_t> lanes) -> Value {
    return vector::ShuffleOp::create(k.builder(), k.location(), low, high, lanes);
  };
  return k.v.pairBf16(elements(even), elements(odd));
}

/// Some steps of every panel: few enough to read the rows as that many streams, enough to write
/// whole lines of cache.
void PackEmitter::copySteps(Value step, int64_t steps, bool wholePairs) {
  SmallVector<Value> rows;
  for (int64_t u = 0; u < steps; ++u)
    rows.push_back(source(from, k.mul(k.mul(k.add(step, u), together()), stride)));
  auto copy = [&](Value first, Value panel, llvm::function_ref<Value(int64_t)> mask) {
    SmallVector<Value> values;
    for (Value row : rows)
      for (int64_t v = 0; v < vectors(); ++v)
        values.push_back(loadAcross(row, k.add(first, v * k.lanes()), mask(v), wholePairs));
    Value place = k.at(panel, k.mul(step, width));
    // A vector may run into the next step's place: that is written after it.
    for (int64_t u = 0; u < steps; ++u)
      for (int64_t v = 0; v < vectors(); ++v)
        k.store(values[u * vectors() + v], k.at(place, u * width + v * k.lanes()));
  };
  // Panels whose vectors end within the rows, though they may reach into the next panel's.
  int64_t reach = vectors() * k.lanes();
  Value whole = k.roundDown(k.maximum(k.sub(count, reach - width), 0), width);
  SmallVector<Value> ahead;
  for (int64_t u = 0; u < steps; ++u)
    ahead.push_back(source(rows[u], k.mul(stride, stepsAhead)));
  forPanels(k.index(0), whole, [&](Value first, Value panel) {
    for (Value row : ahead)
      for (int64_t i = 0; i < width; i += cacheLineBytes / row::byteSize(format.dtype))
        prefetch(k, source(source(row, first), i));
    copy(first, panel, [](int64_t) { return Value(); });
  });
  forPanels(whole, count, [&](Value first, Value panel) {
    copy(first, panel,
         [&](int64_t v) { return k.v.firstLanes(k.sub(k.sub(count, first), v * k.lanes())); });
  });
}

void PackEmitter::zeroStep(Value step) {
  forPanels(k.index(0), count, [&](Value, Value panel) {
    for (int64_t v = 0; v < vectors(); ++v)
      k.store(k.reals(0), k.at(k.at(panel, k.mul(step, width)), v * k.lanes()));
  });
}

void PackEmitter::emitCopy() {
  constexpr int64_t unroll = 4;
  Value steps = k.divide(depth, together()), whole = k.roundDown(steps, unroll);
  k.forRange(0, whole, unroll, [&](Value step) { copySteps(step, unroll); });
  k.forRange(whole, steps, 1, [&](Value step) { copySteps(step, 1); });
  Value end = k.divide(k.add(depth, together() - 1), together());
  if (format.pairs)
    k.forRange(steps, end, 1, [&](Value step) { copySteps(step, 1, /*wholePairs=*/false); });
  k.forRange(end, padded, 1, [&](Value step) { zeroStep(step); });
}

/// As many steps as there are lanes, of one panel whose rows start at `rows`.
void PackEmitter::squares(Value panel, ArrayRef<Value> rows, Value step, Value live) {
  Value place = k.at(panel, k.mul(step, width));
  // Later vectors first: where one runs into the next step's place, that is written after it.
  for (int64_t v = vectors(); v-- > 0;) {
    SmallVector<Value> square(k.lanes());
    for (int64_t i = 0; i < k.lanes(); ++i)
      square[i] = i < ownLanes(v)
                      ? loadAlong(source(rows[v * k.lanes() + i], k.mul(step, together())), live)
                      : Value(LLVM::PoisonOp::create(k.builder(), k.location(), k.vectorType()));
    for (int64_t i = 0; i < ownLanes(v); ++i) // the same of the next panel
      prefetch(k, source(source(rows[v * k.lanes() + i], k.mul(step, together())),
                         k.mul(stride, width)));
    transposeSquare(k, square);
    for (int64_t u = 0; u < k.lanes(); ++u)
      k.store(square[u], k.at(place, u * width + v * k.lanes()));
  }
}

void PackEmitter::emitTransposed() {
  Value whole = k.roundDown(k.divide(depth, together()), k.lanes()), last = k.sub(count, 1);
  Value rest = k.sub(depth, k.mul(whole, together()));
  forPanels(k.index(0), count, [&](Value first, Value panel) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < width; ++i)
      rows.push_back(source(from, k.mul(k.minimum(k.add(first, i), last), stride)));
    k.forRange(0, whole, k.lanes(), [&](Value step) { squares(panel, rows, step, {}); });
    k.ifTrue(k.less(k.index(0), rest), [&] { squares(panel, rows, whole, rest); });
  });
}

std::string functionName(const PackFormat &format, int64_t width) {
  std::string name = llvm::formatv("gradc.gemm_pack_{0}_{1}", row::name(format.dtype), width);
  if (format.rounding == InputRounding::tf32)
    name += "_tf32";
  if (format.pairs)
    name += "_pairs";
  if (format.scaled)
    name += "_scaled";
  if (format.transposed)
    name += "_transposed";
  return name;
}

} // namespace

FunctionType packFunctionType(KernelBuilder &k) {
  Type i64 = k.builder().getI64Type(), pointer = k.pointerType();
  return k.builder().getFunctionType({i64, i64, i64, pointer, pointer, i64, k.v.f32}, {});
}

Value scaleOf(KernelBuilder &k, const PackSource &source) {
  return source.format.scaled ? source.scale : k.v.constant(k.v.f32, 1);
}

func::FuncOp packFunction(KernelBuilder &k, const PackFormat &format, int64_t width) {
  std::string name = functionName(format, width);
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  KernelBuilder pack(k.module(), name, k.target(), packFunctionType(k));
  PackEmitter(pack, format, width).emit();
  return pack.finish();
}

void callPack(KernelBuilder &k, int64_t width, const PackSource &source, Value to) {
  callPack(k, width, source, to,
           panelStride(k, width, paddedDepth(k, source.depth, source.format.pairs)));
}
void callPack(KernelBuilder &k, int64_t width, const PackSource &source, Value to,
              Value panelStride) {
  func::CallOp::create(k.builder(), k.location(), packFunction(k, source.format, width),
                       ValueRange{source.depth, source.count, k.index(source.stride), source.from,
                                  to, panelStride, scaleOf(k, source)});
}

} // namespace gradc::codegen

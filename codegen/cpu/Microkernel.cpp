// See Microkernel.h.
#include "codegen/cpu/Microkernel.h"

#include "codegen/kernels/CeilDiv.h"
#include "mlir/IR/SymbolTable.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
namespace gradc::codegen {

int64_t maxTileVectors(const CpuTarget &target) { return target.f32Lanes() == 16 ? 4 : 2; }

int64_t tileRows(const CpuTarget &target, int64_t vectors) {
  int64_t sums = 6 * maxTileVectors(target);
  int64_t rows = std::min<int64_t>(12, sums / vectors);
  return rows >= 12 ? 12 : rows >= 8 ? 8 : 6;
}

SmallVector<ColumnTile> columnTiles(const CpuTarget &target, int64_t columns) {
  SmallVector<ColumnTile> tiles;
  int64_t lanes = target.f32Lanes(), widest = maxTileVectors(target);
  for (int64_t left = ceilDiv(columns, lanes), column = 0; left > 0;) {
    int64_t vectors = std::min(left, widest);
    tiles.push_back({column, vectors});
    column += vectors * lanes;
    left -= vectors;
  }
  return tiles;
}

namespace {

/// The sums, and the pointers to the current step of A and B, that a tile's loop carries.
struct Carried {
  SmallVector<Value> sums;
  Value a, b;

  SmallVector<Value> flat() const {
    SmallVector<Value> all(sums);
    all.append({a, b});
    return all;
  }
  static Carried of(ArrayRef<Value> all) {
    return {SmallVector<Value>(all.drop_back(2)), all[all.size() - 2], all.back()};
  }
};

/// One step of depth, at constant offsets from the carried pointers.
void emitStep(KernelBuilder &k, const TileSpec &spec, Carried &carried, int64_t step) {
  SmallVector<Value> row;
  for (int64_t j = 0; j < spec.vectors; ++j)
    row.push_back(k.load(k.at(carried.b, step * spec.bStride + j * k.lanes())));
  for (int64_t i = 0; i < spec.rows; ++i) {
    int64_t offset = spec.aTransposed ? step * spec.aStride + i : i * spec.aStride + step;
    Value x = k.v.splat(k.loadFloat(k.at(carried.a, offset)));
    for (int64_t j = 0; j < spec.vectors; ++j) {
      Value &sum = carried.sums[i * spec.vectors + j];
      sum = spec.pairs ? k.v.dotBf16(x, row[j], sum) : k.v.fma(x, row[j], sum);
    }
  }
}

void emitTile(KernelBuilder &k, const TileSpec &spec) {
  Value c = k.parameter(3);
  auto sums = emitTileSums(k, spec, {k.parameter(0), k.parameter(1), k.parameter(2), {}});
  // C is only touched here: loading it before the loop would delay the first multiply-adds.
  for (int64_t i = 0; i < spec.rows; ++i)
    for (int64_t j = 0; j < spec.vectors; ++j) {
      Value place = k.at(c, i * spec.cStride + j * k.lanes());
      Value sum = sums[i * spec.vectors + j];
      k.store(spec.accumulate ? k.v.add(k.load(place), sum) : sum, place);
    }
}

} // namespace

SmallVector<Value> emitTileSums(KernelBuilder &k, const TileSpec &spec,
                                const TileOperands &operands) {
  Carried start{SmallVector<Value>(spec.rows * spec.vectors, k.reals(0)), operands.a, operands.b};
  auto values = k.forRange(k.index(0), operands.depth, spec.depthUnit, start.flat(),
                           [&](Value, ArrayRef<Value> values) {
                             Carried carried = Carried::of(values);
                             for (int64_t step = 0; step < spec.depthUnit; ++step)
                               emitStep(k, spec, carried, step);
                             int64_t a = spec.aTransposed ? spec.aStride : 1;
                             carried.a = k.at(carried.a, spec.depthUnit * a);
                             carried.b = k.at(carried.b, spec.depthUnit * spec.bStride);
                             return carried.flat();
                           });
  return Carried::of(values).sums;
}

func::FuncOp tileFunction(KernelBuilder &k, const TileSpec &spec) {
  std::string name =
      llvm::formatv("gradc.tile_{0}x{1}x{2}_{3}{4}_b{5}_c{6}{7}_u{8}{9}", spec.rows, spec.vectors,
                    k.lanes(), spec.aTransposed ? "t" : "r", spec.aStride, spec.bStride,
                    spec.cStride, spec.accumulate ? "_add" : "", spec.depthUnit,
                    spec.pairs ? "_pairs" : "")
          .str();
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  Type pointer = k.pointerType();
  KernelBuilder tile(
      k.module(), name, k.target(),
      k.builder().getFunctionType({k.builder().getI64Type(), pointer, pointer, pointer}, {}));
  emitTile(tile, spec);
  return tile.finish();
}

void callTile(KernelBuilder &k, const TileSpec &spec, const TileOperands &operands) {
  func::CallOp::create(k.builder(), k.location(), tileFunction(k, spec),
                       ValueRange{operands.depth, operands.a, operands.b, operands.c});
}

} // namespace gradc::codegen

// See GemmBlock.h.
#include "codegen/cpu/GemmBlock.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
namespace gradc::codegen {

TileSpec gemmTile(const CpuTarget &target) {
  TileSpec tile;
  tile.vectors = maxTileVectors(target);
  tile.rows = tileRows(target, tile.vectors);
  tile.aTransposed = true;
  tile.aStride = tile.rows;
  tile.bStride = tile.vectors * target.f32Lanes();
  return tile;
}

namespace {

/// Prints the body of the function of blocks.
class BlockEmitter {
public:
  explicit BlockEmitter(KernelBuilder &k)
      : k(k), tile(gemmTile(k.target())), tileColumns(tile.bStride), depth(k.parameter(0)),
        rows(k.parameter(1)), columns(k.parameter(2)), a(k.parameter(3)), b(k.parameter(4)),
        c(k.parameter(5)), cStride(k.parameter(6)), accumulate(k.parameter(7)),
        ahead{fetchAhead(8), fetchAhead(12)}, partial(k.stack(tile.rows * tileColumns)) {}
  void emit();

private:
  /// See codegen::FetchAhead; `pace` is lines a tile, in units of 1 / paceUnit.
  struct FetchAhead {
    Value from, stride, lines, length, pace;
  };
  static constexpr int64_t paceUnit = 1 << 16;

  FetchAhead fetchAhead(int firstParameter);
  Value fetch(const FetchAhead &next, Value position);
  void emitTile(Value row, Value column, Value panelA, Value panelB);
  void prefetch(ArrayRef<Value> places);
  void storeWhole(ArrayRef<Value> sums, ArrayRef<Value> places);
  void storePart(ArrayRef<Value> sums, Value corner, Value liveRows, Value liveColumns);

  KernelBuilder &k;
  TileSpec tile;
  int64_t tileColumns;
  Value depth, rows, columns, a, b, c, cStride, accumulate;
  FetchAhead ahead[2];
  Value partial; ///< a tile of which only a part lies in C
};

BlockEmitter::FetchAhead BlockEmitter::fetchAhead(int firstParameter) {
  FetchAhead next{k.parameter(firstParameter),
                  k.parameter(firstParameter + 1),
                  k.parameter(firstParameter + 2),
                  k.parameter(firstParameter + 3),
                  {}};
  Value tiles = k.mul(k.divide(k.add(rows, tile.rows - 1), tile.rows),
                      k.divide(k.add(columns, tileColumns - 1), tileColumns));
  next.pace = arith::DivUIOp::create(k.builder(), k.location(), k.mul(next.lines, paceUnit), tiles);
  return next;
}

/// Fetches what is due with one tile; returns the position after it.
Value BlockEmitter::fetch(const FetchAhead &next, Value position) {
  constexpr int64_t lineFloats = 16;
  Value after = k.add(position, next.pace);
  k.forRange(k.divide(position, paceUnit), k.divide(after, paceUnit), 1, [&](Value line) {
    Value start = k.at(next.from, k.mul(line, next.stride));
    k.forRange(0, next.length, lineFloats, [&](Value i) {
      LLVM::Prefetch::create(k.builder(), k.location(), k.at(start, i), /*rw=*/0, /*hint=*/2,
                             /*cache=*/1);
    });
  });
  return after;
}

void BlockEmitter::emit() {
  auto next = [&](Value panel, int64_t width) { return k.at(panel, panelStride(k, width, depth)); };
  SmallVector<Value> start{b, k.index(0), k.index(0)};
  k.forRange(k.index(0), columns, tileColumns, start, [&](Value column, ArrayRef<Value> outer) {
    SmallVector<Value> innerStart{a, outer[1], outer[2]};
    auto inner = k.forRange(
        k.index(0), rows, tile.rows, innerStart, [&](Value row, ArrayRef<Value> carried) {
          SmallVector<Value> after{next(carried[0], tile.rows), fetch(ahead[0], carried[1]),
                                   fetch(ahead[1], carried[2])};
          emitTile(row, column, carried[0], outer[0]);
          return after;
        });
    return SmallVector<Value>{next(outer[0], tileColumns), inner[1], inner[2]};
  });
}

void BlockEmitter::emitTile(Value row, Value column, Value panelA, Value panelB) {
  Value corner = k.at(k.at(c, k.mul(row, cStride)), column);
  SmallVector<Value> places;
  for (int64_t i = 0; i < tile.rows; ++i)
    places.push_back(i == 0 ? corner : k.at(places.back(), cStride));
  prefetch(places);
  auto sums = emitTileSums(k, tile, {depth, panelA, panelB, {}});
  Value liveRows = k.sub(rows, row), liveColumns = k.sub(columns, column);
  Value partOnly =
      k.either(k.less(liveRows, k.index(tile.rows)), k.less(liveColumns, k.index(tileColumns)));
  k.ifTrue(
      partOnly, [&] { storePart(sums, corner, liveRows, liveColumns); },
      [&] { storeWhole(sums, places); });
}

/// C's lines arrive while the sums are made.
void BlockEmitter::prefetch(ArrayRef<Value> places) {
  constexpr int64_t lineFloats = 16;
  auto line = [&](Value address) {
    LLVM::Prefetch::create(k.builder(), k.location(), address, /*rw=*/1, /*hint=*/3, /*cache=*/1);
  };
  for (Value place : places) {
    for (int64_t column = 0; column < tileColumns; column += lineFloats)
      line(k.at(place, column));
    line(k.at(place, tileColumns - 1)); // rows need not start where a line does
  }
}

void BlockEmitter::storeWhole(ArrayRef<Value> sums, ArrayRef<Value> places) {
  auto place = [&](int64_t sum) {
    return k.at(places[sum / tile.vectors], sum % tile.vectors * k.lanes());
  };
  auto store = [&](ArrayRef<Value> values) {
    for (auto [i, value] : llvm::enumerate(values))
      k.store(value, place(i));
  };
  k.ifTrue(
      accumulate,
      [&] {
        // All loads come before the first store: rows apart by a multiple of 4 KiB look to the
        // processor as if they were the same.
        SmallVector<Value> totals;
        for (auto [i, sum] : llvm::enumerate(sums))
          totals.push_back(k.v.add(k.load(place(i)), sum));
        store(totals);
      },
      [&] { store(sums); });
}

void BlockEmitter::storePart(ArrayRef<Value> sums, Value corner, Value liveRows,
                             Value liveColumns) {
  for (int64_t i = 0; i < tile.rows; ++i)
    for (int64_t j = 0; j < tile.vectors; ++j)
      k.store(sums[i * tile.vectors + j], k.at(partial, i * tileColumns + j * k.lanes()));
  k.forRange(0, k.minimum(liveRows, tile.rows), 1, [&](Value i) {
    Value row = k.at(corner, k.mul(i, cStride)), sum = k.at(partial, k.mul(i, tileColumns));
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value place = k.at(row, j * k.lanes()), value = k.load(k.at(sum, j * k.lanes()));
      Value mask = k.v.firstLanes(k.sub(liveColumns, j * k.lanes()));
      auto store = [&](Value x) { k.v.storeVector(row::Dtype::f32, x, place, mask); };
      k.ifTrue(
          accumulate, [&] { store(k.v.add(k.v.loadVector(row::Dtype::f32, place, mask), value)); },
          [&] { store(value); });
    }
  });
}

func::FuncOp blockFunction(KernelBuilder &k) {
  llvm::StringRef name = "gradc.gemm_block";
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  Type i64 = k.builder().getI64Type(), i1 = k.builder().getI1Type(), pointer = k.pointerType();
  KernelBuilder block(
      k.module(), name, k.target(),
      k.builder().getFunctionType({i64, i64, i64, pointer, pointer, pointer, i64, i1, //
                                   pointer, i64, i64, i64, pointer, i64, i64, i64},
                                  {}));
  BlockEmitter(block).emit();
  return block.finish();
}

} // namespace

void callGemmBlock(KernelBuilder &k, const GemmBlock &block) {
  SmallVector<Value> operands{block.depth, block.rows, block.columns,          block.a,
                              block.b,     block.c,    k.index(block.cStride), block.accumulate};
  for (const FetchAhead &next : {block.nextA, block.nextB})
    operands.append({next.from, k.index(next.stride), next.lines, next.length});
  func::CallOp::create(k.builder(), k.location(), blockFunction(k), operands);
}

} // namespace gradc::codegen

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

/// Bytes that one prefetch brings.
constexpr int64_t lineBytes = 64;

/// Prints the body of the function of blocks.
class BlockEmitter {
public:
  BlockEmitter(KernelBuilder &k, row::Dtype dtype)
      : k(k), tile(gemmTile(k.target())), tileColumns(tile.bStride), dtype(dtype),
        depth(k.parameter(0)), rows(k.parameter(1)), columns(k.parameter(2)), a(k.parameter(3)),
        b(k.parameter(4)), c(k.parameter(5)), cStride(k.parameter(6)), accumulate(k.parameter(7)),
        ahead{fetchAhead(8), fetchAhead(12)}, partial(k.stack(tile.rows * tileColumns)) {
    if (isNarrow())
      held = {k.parameter(16), k.parameter(17)};
  }
  void emit();

private:
  /// See codegen::FetchAhead; `pace` is lines a tile, in units of 1 / paceUnit.
  struct FetchAhead {
    Value from, stride, lines, length, pace;
  };
  static constexpr int64_t paceUnit = 1 << 16;

  /// A tile's place in C and, of a narrow C, among the sums that are held.
  struct Place {
    SmallVector<Value> rows;
    Value liveRows, liveColumns; ///< those of C, up to its end
    Value held;
  };

  bool isNarrow() const { return dtype != row::Dtype::f32; }
  Value inC(Value base, Value elements) { return k.v.elementPointer(dtype, base, elements); }
  Value inC(Value base, int64_t elements) { return k.v.elementPointer(dtype, base, elements); }
  Value vectorOf(const Place &place, int64_t sum) {
    return inC(place.rows[sum / tile.vectors], sum % tile.vectors * k.lanes());
  }

  FetchAhead fetchAhead(int firstParameter);
  Value fetch(const FetchAhead &next, Value position);
  Place placeOf(Value row, Value column);
  void emitTile(Value row, Value column, Value panelA, Value panelB);
  void prefetch(const Place &place);
  void hold(ArrayRef<Value> sums, const Place &place);
  void store(ArrayRef<Value> sums, const Place &place);
  void storeWhole(ArrayRef<Value> sums, const Place &place);
  void storePart(ArrayRef<Value> sums, const Place &place);

  KernelBuilder &k;
  TileSpec tile;
  int64_t tileColumns;
  row::Dtype dtype; ///< of C
  Value depth, rows, columns, a, b, c, cStride, accumulate;
  FetchAhead ahead[2];
  Value partial; ///< a tile of which only a part lies in C
  HeldSums held;
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
  auto byteAt = [&](Value base, Value bytes) -> Value {
    return LLVM::GEPOp::create(k.builder(), k.location(), k.pointerType(), k.builder().getI8Type(),
                               base, ValueRange{bytes});
  };
  Value after = k.add(position, next.pace);
  k.forRange(k.divide(position, paceUnit), k.divide(after, paceUnit), 1, [&](Value line) {
    Value start = byteAt(next.from, k.mul(line, next.stride));
    k.forRange(0, next.length, lineBytes, [&](Value i) {
      LLVM::Prefetch::create(k.builder(), k.location(), byteAt(start, i), /*rw=*/0, /*hint=*/2,
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

BlockEmitter::Place BlockEmitter::placeOf(Value row, Value column) {
  Place place{{}, k.sub(rows, row), k.sub(columns, column), {}};
  for (int64_t i = 0; i < tile.rows; ++i)
    place.rows.push_back(i == 0 ? inC(inC(c, k.mul(row, cStride)), column)
                                : inC(place.rows.back(), cStride));
  if (isNarrow())
    place.held =
        k.at(held.tiles, k.add(k.mul(column, k.roundUp(rows, tile.rows)), k.mul(row, tileColumns)));
  return place;
}

void BlockEmitter::emitTile(Value row, Value column, Value panelA, Value panelB) {
  Place place = placeOf(row, column);
  prefetch(place);
  auto sums = emitTileSums(k, tile, {depth, panelA, panelB, {}});
  if (isNarrow())
    hold(sums, place);
  else
    store(sums, place);
}

/// C's lines, or those of the sums so far, arrive while the sums are made.
void BlockEmitter::prefetch(const Place &place) {
  int64_t lineElements = lineBytes / row::byteSize(dtype);
  auto line = [&](Value address) {
    LLVM::Prefetch::create(k.builder(), k.location(), address, /*rw=*/1, /*hint=*/3, /*cache=*/1);
  };
  auto linesOfC = [&] {
    for (Value row : place.rows) {
      for (int64_t column = 0; column < tileColumns; column += lineElements)
        line(inC(row, column));
      line(inC(row, tileColumns - 1)); // rows need not start where a line does
    }
  };
  if (!isNarrow())
    return linesOfC();
  k.ifTrue(held.isLast, linesOfC);
  k.ifTrue(accumulate, [&] {
    for (int64_t i = 0; i < tile.rows * tileColumns;
         i += lineBytes / row::byteSize(row::Dtype::f32))
      line(k.at(place.held, i));
  });
}

/// Sums of a narrow C: to those of the slices before, and on, or rounded to C.
void BlockEmitter::hold(ArrayRef<Value> sums, const Place &place) {
  auto settle = [&](ArrayRef<Value> totals) {
    k.ifTrue(
        held.isLast, [&] { store(totals, place); },
        [&] {
          for (auto [i, total] : llvm::enumerate(totals))
            k.store(total, k.at(place.held, static_cast<int64_t>(i) * k.lanes()));
        });
  };
  k.ifTrue(
      accumulate,
      [&] {
        SmallVector<Value> totals;
        for (auto [i, sum] : llvm::enumerate(sums))
          totals.push_back(
              k.v.add(k.load(k.at(place.held, static_cast<int64_t>(i) * k.lanes())), sum));
        settle(totals);
      },
      [&] { settle(sums); });
}

void BlockEmitter::store(ArrayRef<Value> sums, const Place &place) {
  Value partOnly = k.either(k.less(place.liveRows, k.index(tile.rows)),
                            k.less(place.liveColumns, k.index(tileColumns)));
  k.ifTrue(partOnly, [&] { storePart(sums, place); }, [&] { storeWhole(sums, place); });
}

void BlockEmitter::storeWhole(ArrayRef<Value> sums, const Place &place) {
  auto write = [&](ArrayRef<Value> values) {
    for (auto [i, value] : llvm::enumerate(values))
      k.v.storeVector(dtype, value, vectorOf(place, static_cast<int64_t>(i)), {});
  };
  if (isNarrow())
    return write(sums);
  k.ifTrue(
      accumulate,
      [&] {
        // All loads come before the first store: rows apart by a multiple of 4 KiB look to the
        // processor as if they were the same.
        SmallVector<Value> totals;
        for (auto [i, sum] : llvm::enumerate(sums))
          totals.push_back(k.v.add(k.load(vectorOf(place, static_cast<int64_t>(i))), sum));
        write(totals);
      },
      [&] { write(sums); });
}

void BlockEmitter::storePart(ArrayRef<Value> sums, const Place &place) {
  for (auto [i, sum] : llvm::enumerate(sums))
    k.store(sum, k.at(partial, static_cast<int64_t>(i) * k.lanes()));
  k.forRange(0, k.minimum(place.liveRows, tile.rows), 1, [&](Value i) {
    Value row = inC(place.rows[0], k.mul(i, cStride));
    Value sum = k.at(partial, k.mul(i, tileColumns));
    for (int64_t j = 0; j < tile.vectors; ++j) {
      Value to = inC(row, j * k.lanes()), value = k.load(k.at(sum, j * k.lanes()));
      Value mask = k.v.firstLanes(k.sub(place.liveColumns, j * k.lanes()));
      auto write = [&](Value x) { k.v.storeVector(dtype, x, to, mask); };
      if (isNarrow())
        write(value);
      else
        k.ifTrue(
            accumulate, [&] { write(k.v.add(k.v.loadVector(dtype, to, mask), value)); },
            [&] { write(value); });
    }
  });
}

func::FuncOp blockFunction(KernelBuilder &k, row::Dtype dtype) {
  bool isNarrow = dtype != row::Dtype::f32;
  std::string name =
      isNarrow ? std::string("gradc.gemm_block_") + row::name(dtype) : "gradc.gemm_block";
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  Type i64 = k.builder().getI64Type(), i1 = k.builder().getI1Type(), pointer = k.pointerType();
  SmallVector<Type> types{i64,     i64, i64, pointer, pointer, pointer, i64, i1, //
                          pointer, i64, i64, i64,     pointer, i64,     i64, i64};
  if (isNarrow)
    types.append({pointer, i1});
  KernelBuilder block(k.module(), name, k.target(), k.builder().getFunctionType(types, {}));
  BlockEmitter(block, dtype).emit();
  return block.finish();
}

} // namespace

void callGemmBlock(KernelBuilder &k, const GemmBlock &block) {
  SmallVector<Value> operands{block.depth, block.rows, block.columns,          block.a,
                              block.b,     block.c,    k.index(block.cStride), block.accumulate};
  for (const FetchAhead &next : {block.nextA, block.nextB})
    operands.append({next.from, k.index(next.stride), next.lines, next.length});
  if (block.cDtype != row::Dtype::f32)
    operands.append({block.held.tiles, block.held.isLast});
  func::CallOp::create(k.builder(), k.location(), blockFunction(k, block.cDtype), operands);
}

} // namespace gradc::codegen

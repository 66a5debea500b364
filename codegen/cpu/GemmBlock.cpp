// See GemmBlock.h.
#include "codegen/cpu/GemmBlock.h"

#include "codegen/cpu/GemmAhead.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
namespace gradc::codegen {

TileSpec gemmTile(const CpuTarget &target) {
  TileSpec tile;
  // With 16 registers 4 rows of 3 vectors: as many sums as 6 of 2, and less of A to broadcast.
  bool manyRegisters = target.f32Lanes() == 16;
  tile.vectors = manyRegisters ? 4 : 3;
  tile.rows = manyRegisters ? 6 : 4;
  tile.aTransposed = true;
  tile.aStride = tile.rows;
  tile.bStride = tile.vectors * target.f32Lanes();
  return tile;
}

namespace {

/// Prints the body of the function of blocks.
class BlockEmitter {
public:
  BlockEmitter(KernelBuilder &k, row::Dtype dtype, bool pairs);
  void emit();
  static SmallVector<Type> parameterTypes(KernelBuilder &k, row::Dtype dtype);

private:
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

  Value sourceOfPanel(Value column);
  void packPanel(Value column, Value panel);
  FetchedLines nextPanel(Value column, Value panel);
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
  Value rows, columns, a, b, panelStrideB, packsB, c, cStride, accumulate, nextA;
  PackArguments sourceB, nextSourceA;
  Value depth;
  Value partial; ///< a tile of which only a part lies in C
  HeldSums held;
};

constexpr int64_t blockParameters = 10; ///< before those of the sources

SmallVector<Type> BlockEmitter::parameterTypes(KernelBuilder &k, row::Dtype dtype) {
  Type i64 = k.builder().getI64Type(), i1 = k.builder().getI1Type(), pointer = k.pointerType();
  SmallVector<Type> types{i64, i64, pointer, pointer, i64, i1, pointer, i64, i1, pointer};
  for (int source = 0; source < 2; ++source)
    types.append(PackArguments::types(k));
  if (dtype != row::Dtype::f32)
    types.append({pointer, i1});
  return types;
}

BlockEmitter::BlockEmitter(KernelBuilder &k, row::Dtype dtype, bool pairs)
    : k(k), tile(gemmTile(k.target())), tileColumns(tile.bStride), dtype(dtype),
      rows(k.parameter(0)), columns(k.parameter(1)), a(k.parameter(2)), b(k.parameter(3)),
      panelStrideB(k.parameter(4)), packsB(k.parameter(5)), c(k.parameter(6)),
      cStride(k.parameter(7)), accumulate(k.parameter(8)), nextA(k.parameter(9)),
      sourceB(PackArguments::of(k, blockParameters)),
      nextSourceA(
          PackArguments::of(k, blockParameters + static_cast<int>(PackArguments::types(k).size()))),
      depth(paddedDepth(k, sourceB.depth, pairs)), partial(k.stack(tile.rows * tileColumns)) {
  tile.pairs = pairs;
  if (isNarrow()) {
    int last = static_cast<int>(parameterTypes(k, dtype).size()) - 1;
    held = {k.parameter(last - 1), k.parameter(last)};
  }
}

Value BlockEmitter::sourceOfPanel(Value column) {
  Value elements = k.select(sourceB.transposed, k.mul(column, sourceB.stride), column);
  return byteAt(k, sourceB.from, k.mul(elements, sourceB.elementBytes));
}

void BlockEmitter::packPanel(Value column, Value panel) {
  k.ifTrue(packsB, [&] {
    sourceB.pack(k, sourceB.depth, k.minimum(k.sub(columns, column), tileColumns),
                 sourceOfPanel(column), panel, panelStrideB);
  });
}

/// What is read next of B, while the panel before `column` is used: the source of a panel or, where
/// it is packed already, the panel.
FetchedLines BlockEmitter::nextPanel(Value column, Value panel) {
  PackArguments part = sourceB;
  part.count = k.maximum(k.minimum(k.sub(columns, column), tileColumns), 0);
  Value packedLines = k.divide(k.mul(depth, tileColumns * int64_t(sizeof(float))), cacheLineBytes);
  Value exists = k.less(column, columns);
  return {k.select(packsB, sourceOfPanel(column), panel),
          k.select(packsB, part.strideBytes(k), k.index(cacheLineBytes)),
          k.select(exists, k.select(packsB, part.lines(k), packedLines), k.index(0)),
          k.select(packsB, part.lineBytes(k), k.index(cacheLineBytes))};
}

void BlockEmitter::emit() {
  Value rowTiles = k.ceilDivide(rows, tile.rows);
  NextPanels ahead(k, nextSourceA, nextA, tile.rows, tile.pairs,
                   k.mul(rowTiles, k.ceilDivide(columns, tileColumns)));
  Value panelStrideA = panelStride(k, tile.rows, depth);
  auto divide = [&](Value x, Value y) -> Value {
    return arith::DivUIOp::create(k.builder(), k.location(), x, y);
  };
  SmallVector<Value> start{b};
  start.append(ahead.start());
  auto end =
      k.forRange(k.index(0), columns, tileColumns, start, [&](Value column, ArrayRef<Value> outer) {
        Value panelB = outer[0], afterB = k.at(panelB, panelStrideB);
        packPanel(column, panelB);
        FetchedLines next = nextPanel(k.add(column, tileColumns), afterB);
        SmallVector<Value> innerStart{a, k.index(0)};
        innerStart.append(outer.begin() + 1, outer.end());
        auto inner = k.forRange(k.index(0), rows, tile.rows, innerStart,
                                [&](Value row, ArrayRef<Value> carried) {
                                  Value tilesDone = k.add(k.divide(row, tile.rows), 1);
                                  Value fetched = divide(k.mul(next.lines, tilesDone), rowTiles);
                                  next.fetch(k, carried[1], fetched);
                                  SmallVector<Value> after{k.at(carried[0], panelStrideA), fetched};
                                  after.append(ahead.advance(carried.drop_front(2)));
                                  emitTile(row, column, carried[0], panelB);
                                  return after;
                                });
        SmallVector<Value> after{afterB};
        after.append(inner.begin() + 2, inner.end());
        return after;
      });
  ahead.finish(ArrayRef<Value>(end).drop_front());
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
  int64_t lineElements = cacheLineBytes / row::byteSize(dtype);
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
         i += cacheLineBytes / row::byteSize(row::Dtype::f32))
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

func::FuncOp blockFunction(KernelBuilder &k, row::Dtype dtype, bool pairs) {
  bool isNarrow = dtype != row::Dtype::f32;
  std::string name =
      isNarrow ? std::string("gradc.gemm_block_") + row::name(dtype) : "gradc.gemm_block";
  if (pairs)
    name += "_pairs";
  if (auto existing = k.module().lookupSymbol<func::FuncOp>(name))
    return existing;
  KernelBuilder block(k.module(), name, k.target(),
                      k.builder().getFunctionType(BlockEmitter::parameterTypes(k, dtype), {}));
  BlockEmitter(block, dtype, pairs).emit();
  return block.finish();
}

} // namespace

void callGemmBlock(KernelBuilder &k, const GemmBlock &block) {
  TileSpec tile = gemmTile(k.target());
  SmallVector<Value> operands{block.rows,         block.columns, block.a, block.b,
                              block.panelStrideB, block.packsB,  block.c, k.index(block.cStride),
                              block.accumulate,   block.nextA};
  operands.append(PackArguments::values(k, block.sourceB, tile.bStride));
  operands.append(PackArguments::values(k, block.nextSourceA, tile.rows));
  if (block.cDtype != row::Dtype::f32)
    operands.append({block.held.tiles, block.held.isLast});
  func::CallOp::create(k.builder(), k.location(),
                       blockFunction(k, block.cDtype, block.sourceB.format.pairs), operands);
}

} // namespace gradc::codegen

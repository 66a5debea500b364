// The kernel of one matrix product: which part a task owns, and the loops over depth and rows.
#include "codegen/cpu/Gemm.h"

#include "codegen/cpu/GemmBlock.h"
#include "codegen/cpu/GemmThin.h"
#include "codegen/cpu/GemmTiling.h"

using namespace mlir;
namespace gradc::codegen {

namespace {

class GemmEmitter {
public:
  GemmEmitter(KernelBuilder &k, const GemmSpec &spec)
      : k(k), spec(spec), tiling(gemmTiling(spec)), tile(gemmTile(k.target())) {}
  void emit();

private:
  void openTask();
  Value scratch(int64_t count, int64_t width);
  Value element(Value matrix, const GemmSpec::Matrix &strides, Value row, Value column);
  PackSource sourceA(Value first, Value firstRow);
  PackSource sourceB(Value first);
  FetchAhead ahead(const PackSource &source, Value part, int64_t parts);
  void slice(Value first);

  KernelBuilder &k;
  const GemmSpec &spec;
  GemmTiling tiling;
  TileSpec tile;
  Value a, b, c;        ///< of this batch
  Value scaleA, scaleB; ///< null where the spec has none
  Value row, column;    ///< first of the task
  Value rows, columns;  ///< of the task
  Value packedA, packedB;
  Value heldSums; ///< all that the task holds; C's address where it holds none
};

void GemmEmitter::openTask() {
  // Tasks that run at the same time are neighbours, and share their columns of B.
  Value rest = k.divide(k.task(), tiling.rowParts);
  Value batch = k.divide(rest, tiling.columnParts);
  row = k.mul(k.remainder(k.task(), tiling.rowParts), tiling.rows);
  column = k.mul(k.remainder(rest, tiling.columnParts), tiling.columns);
  rows = k.minimum(k.sub(k.index(spec.m), row), tiling.rows);
  columns = k.minimum(k.sub(k.index(spec.n), column), tiling.columns);
  auto ofBatch = [&](int buffer, const GemmSpec::Matrix &matrix) {
    return k.v.elementPointer(matrix.dtype, k.buffer(buffer), k.mul(batch, matrix.batchStride));
  };
  a = ofBatch(0, spec.a);
  b = ofBatch(1, spec.b);
  c = ofBatch(spec.scaled ? 4 : 2, spec.c);
  if (spec.scaled) {
    scaleA = k.loadFloat(k.buffer(2));
    scaleB = k.loadFloat(k.buffer(3));
  }
}

/// Room for `count` rows of A, or columns of B, in panels.
Value GemmEmitter::scratch(int64_t count, int64_t width) {
  int64_t panels = (count + width - 1) / width;
  int64_t depth = (tiling.depth + k.lanes() - 1) / k.lanes() * k.lanes();
  return k.stack(panels * panelStride(width, depth));
}

Value GemmEmitter::element(Value matrix, const GemmSpec::Matrix &strides, Value row, Value column) {
  return k.v.elementPointer(
      strides.dtype, matrix,
      k.add(k.mul(row, strides.rowStride), k.mul(column, strides.columnStride)));
}

void GemmEmitter::emit() {
  openTask();
  packedA = scratch(tiling.blockRows, tile.rows);
  packedB = scratch(tiling.columns, tile.bStride);
  heldSums = holdsSums(spec) ? k.stack(tiling.rows * tiling.columns) : c;
  k.forRange(0, spec.k, tiling.depth, [&](Value first) { slice(first); });
}

Value sizeWithin(KernelBuilder &k, Value first, Value end, int64_t most) {
  return k.maximum(k.minimum(k.sub(end, first), most), 0);
}

/// A block of rows of A, or the columns of B, in the slice at `first`; of no size behind the end.
PackSource GemmEmitter::sourceA(Value first, Value firstRow) {
  bool transposed = spec.a.columnStride == 1;
  return {packFormat(spec, spec.a, transposed),
          element(a, spec.a, k.add(row, firstRow), first),
          transposed ? spec.a.rowStride : spec.a.columnStride,
          sizeWithin(k, first, k.index(spec.k), tiling.depth),
          sizeWithin(k, firstRow, rows, tiling.blockRows),
          scaleA};
}
PackSource GemmEmitter::sourceB(Value first) {
  bool transposed = spec.b.columnStride != 1;
  return {packFormat(spec, spec.b, transposed),
          element(b, spec.b, first, column),
          transposed ? spec.b.columnStride : spec.b.rowStride,
          sizeWithin(k, first, k.index(spec.k), tiling.depth),
          columns,
          scaleB};
}

/// One of `parts` parts of a source.
FetchAhead GemmEmitter::ahead(const PackSource &source, Value part, int64_t parts) {
  int64_t bytes = row::byteSize(source.format.dtype);
  Value lines = source.format.transposed ? source.count : source.depth;
  Value length = source.format.transposed ? source.depth : source.count;
  Value start = k.divide(k.mul(lines, part), parts);
  Value end = k.divide(k.mul(lines, k.add(part, 1)), parts);
  Value from = k.v.elementPointer(source.format.dtype, source.from, k.mul(start, source.stride));
  return {from, source.stride * bytes, k.sub(end, start), k.mul(length, bytes)};
}

void GemmEmitter::slice(Value first) {
  PackSource sliceB = sourceB(first);
  callPack(k, tile.bStride, sliceB, packedB);
  Value always =
      arith::ConstantOp::create(k.builder(), k.location(), k.builder().getBoolAttr(true));
  Value accumulate = spec.accumulate ? always : k.less(k.index(0), first);
  Value nextFirst = k.add(first, tiling.depth);
  Value isLast = k.less(k.index(spec.k - 1), nextFirst);
  int64_t blocks = (tiling.rows + tiling.blockRows - 1) / tiling.blockRows;
  k.forRange(0, rows, tiling.blockRows, [&](Value i) {
    PackSource block = sourceA(first, i);
    callPack(k, tile.rows, block, packedA);
    Value nextRow = k.add(i, tiling.blockRows), more = k.less(nextRow, rows);
    PackSource next =
        sourceA(k.select(more, first, nextFirst), k.select(more, nextRow, k.index(0)));
    HeldSums held{k.at(heldSums, k.mul(i, tiling.columns)), isLast};
    callGemmBlock(k, {paddedDepth(k, sliceB.depth), block.count, columns, packedA, packedB,
                      element(c, spec.c, k.add(row, i), column), spec.c.rowStride, spec.c.dtype,
                      accumulate, held, ahead(next, k.index(0), 1),
                      ahead(sourceB(nextFirst), k.divide(i, tiling.blockRows), blocks)});
  });
}

} // namespace

func::FuncOp emitGemm(ModuleOp module, llvm::StringRef name, const GemmSpec &spec,
                      const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  if (isThin(spec))
    emitThinProduct(k, spec);
  else
    GemmEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

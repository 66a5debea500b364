// The kernel of one matrix product: which part a task owns, and the loops over depth and rows.
#include "codegen/cpu/Gemm.h"

#include "codegen/cpu/GemmBlock.h"
#include "codegen/cpu/GemmThin.h"
#include "codegen/cpu/GemmTiling.h"
#include "codegen/cpu/Panels.h"
#include "codegen/kernels/CeilDiv.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
namespace gradc::codegen {

namespace {

class GemmEmitter {
public:
  GemmEmitter(KernelBuilder &k, const GemmSpec &spec)
      : k(k), spec(spec), pairs(takesPairs(spec, k.target())),
        tiling(gemmTiling(spec, stepsTogether(pairs))), tile(gemmTile(k.target())) {}
  void emit();

private:
  void openTask();
  Value scratch(int64_t count, int64_t width);
  PackFormat format(const GemmSpec::Matrix &operand, bool transposed) const {
    PackFormat format = packFormat(spec, operand, transposed);
    format.pairs = pairs;
    return format;
  }
  Value element(Value matrix, const GemmSpec::Matrix &strides, Value row, Value column);
  PackSource sourceA(Value first, Value firstRow);
  PackSource sourceB(Value first);
  Value panelsOfB(Value first);
  SmallVector<Value> slice(Value first, ArrayRef<Value> panelsOfA);
  void block(Value first, Value firstRow, ArrayRef<Value> panelsOfA);

  KernelBuilder &k;
  const GemmSpec &spec;
  bool pairs;
  GemmTiling tiling;
  TileSpec tile;
  Value a, b, c;        ///< of this batch
  Value scaleA, scaleB; ///< null where the spec has none
  Value row, column;    ///< first of the task
  Value rows, columns;  ///< of the task
  Value packedB;        ///< the task's own panels of a slice; null where B lies in panels
  Value heldSums;       ///< all that the task holds; C's address where it holds none
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
  b = spec.panelsB ? k.buffer(1) : ofBatch(1, spec.b);
  c = ofBatch(spec.scaled ? 4 : 2, spec.c);
  if (spec.scaled) {
    scaleA = k.loadFloat(k.buffer(2));
    scaleB = k.loadFloat(k.buffer(3));
  }
}

/// Room for `count` rows of A, or columns of B, in panels.
Value GemmEmitter::scratch(int64_t count, int64_t width) {
  int64_t panels = ceilDiv(count, width);
  int64_t depth = llvm::alignTo(llvm::divideCeil(tiling.depth, stepsTogether(pairs)), k.lanes());
  return k.stack(panels * panelStride(width, depth));
}

Value GemmEmitter::element(Value matrix, const GemmSpec::Matrix &strides, Value row, Value column) {
  return k.v.elementPointer(
      strides.dtype, matrix,
      k.add(k.mul(row, strides.rowStride), k.mul(column, strides.columnStride)));
}

Value sizeWithin(KernelBuilder &k, Value first, Value end, int64_t most) {
  return k.maximum(k.minimum(k.sub(end, first), most), 0);
}

/// A block of rows of A, or the columns of B, in the slice at `first`; of no size behind the end.
PackSource GemmEmitter::sourceA(Value first, Value firstRow) {
  bool transposed = spec.a.columnStride == 1;
  return {format(spec.a, transposed),
          element(a, spec.a, k.add(row, firstRow), first),
          transposed ? spec.a.rowStride : spec.a.columnStride,
          sizeWithin(k, first, k.index(spec.k), tiling.depth),
          sizeWithin(k, firstRow, rows, tiling.blockRows),
          scaleA};
}
PackSource GemmEmitter::sourceB(Value first) {
  bool transposed = spec.b.columnStride != 1;
  return {format(spec.b, transposed),
          element(b, spec.b, first, column),
          transposed ? spec.b.columnStride : spec.b.rowStride,
          sizeWithin(k, first, k.index(spec.k), tiling.depth),
          columns,
          scaleB};
}

/// The panels of the task's columns, in the slice at `first`.
Value GemmEmitter::panelsOfB(Value first) {
  if (!spec.panelsB)
    return packedB;
  Value panel = k.divide(column, tile.bStride), step = k.divide(first, stepsTogether(pairs));
  return k.at(b,
              k.add(k.mul(panel, storedPanelStride(spec, k.target())), k.mul(step, tile.bStride)));
}

void GemmEmitter::emit() {
  openTask();
  if (!spec.panelsB)
    packedB = scratch(tiling.columns, tile.bStride);
  heldSums = holdsSums(spec) ? k.stack(tiling.rows * tiling.columns) : c;
  // A block multiplies the panels of A in one place while those of the next go to the other.
  SmallVector<Value> panelsOfA{scratch(tiling.blockRows, tile.rows),
                               scratch(tiling.blockRows, tile.rows)};
  callPack(k, tile.rows, sourceA(k.index(0), k.index(0)), panelsOfA[0]);
  k.forRange(k.index(0), k.index(spec.k), tiling.depth, panelsOfA,
             [&](Value first, ArrayRef<Value> carried) { return slice(first, carried); });
}

SmallVector<Value> GemmEmitter::slice(Value first, ArrayRef<Value> panelsOfA) {
  return k.forRange(k.index(0), rows, tiling.blockRows, panelsOfA,
                    [&](Value firstRow, ArrayRef<Value> carried) {
                      block(first, firstRow, carried);
                      return SmallVector<Value>{carried[1], carried[0]};
                    });
}

void GemmEmitter::block(Value first, Value firstRow, ArrayRef<Value> panelsOfA) {
  auto constant = [&](bool value) -> Value {
    return arith::ConstantOp::create(k.builder(), k.location(), k.builder().getBoolAttr(value));
  };
  Value nextFirst = k.add(first, tiling.depth), nextRow = k.add(firstRow, tiling.blockRows);
  Value more = k.less(nextRow, rows);
  HeldSums held{k.at(heldSums, k.mul(firstRow, tiling.columns)),
                k.less(k.index(spec.k - 1), nextFirst)};
  PackSource fromB = sourceB(first);
  callGemmBlock(k, {.rows = sizeWithin(k, firstRow, rows, tiling.blockRows),
                    .columns = columns,
                    .a = panelsOfA[0],
                    .sourceB = fromB,
                    .b = panelsOfB(first),
                    .panelStrideB = spec.panelsB ? k.index(storedPanelStride(spec, k.target()))
                                                 : panelStride(k, tile.bStride,
                                                               paddedDepth(k, fromB.depth, pairs)),
                    .packsB = spec.panelsB ? constant(false) : k.less(firstRow, k.index(1)),
                    .c = element(c, spec.c, k.add(row, firstRow), column),
                    .cStride = spec.c.rowStride,
                    .cDtype = spec.c.dtype,
                    .accumulate = spec.accumulate ? constant(true) : k.less(k.index(0), first),
                    .held = held,
                    .nextSourceA = sourceA(k.select(more, first, nextFirst),
                                           k.select(more, nextRow, k.index(0))),
                    .nextA = panelsOfA[1]});
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

// The kernel of one matrix product: which part a task owns, and the loops over depth and rows.
#include "codegen/cpu/Gemm.h"

#include "codegen/cpu/GemmBlock.h"
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
  void slice(Value first);

  KernelBuilder &k;
  const GemmSpec &spec;
  GemmTiling tiling;
  TileSpec tile;
  Value a, b, c;       ///< of this batch
  Value row, column;   ///< first of the task
  Value rows, columns; ///< of the task
  Value packedA, packedB;
};

void GemmEmitter::openTask() {
  // Tasks that run at the same time are neighbours, and share their columns of B.
  Value rest = k.divide(k.task(), tiling.rowParts);
  Value batch = k.divide(rest, tiling.columnParts);
  row = k.mul(k.remainder(k.task(), tiling.rowParts), tiling.rows);
  column = k.mul(k.remainder(rest, tiling.columnParts), tiling.columns);
  rows = k.minimum(k.sub(k.index(spec.m), row), tiling.rows);
  columns = k.minimum(k.sub(k.index(spec.n), column), tiling.columns);
  a = k.at(k.buffer(0), k.mul(batch, spec.a.batchStride));
  b = k.at(k.buffer(1), k.mul(batch, spec.b.batchStride));
  c = k.at(k.buffer(2), k.mul(batch, spec.c.batchStride));
}

/// Room for `count` rows of A, or columns of B, in panels.
Value GemmEmitter::scratch(int64_t count, int64_t width) {
  int64_t panels = (count + width - 1) / width;
  int64_t depth = (tiling.depth + k.lanes() - 1) / k.lanes() * k.lanes();
  return k.stack(panels * panelStride(width, depth));
}

Value GemmEmitter::element(Value matrix, const GemmSpec::Matrix &strides, Value row, Value column) {
  return k.at(matrix, k.add(k.mul(row, strides.rowStride), k.mul(column, strides.columnStride)));
}

void GemmEmitter::emit() {
  openTask();
  packedA = scratch(tiling.blockRows, tile.rows);
  packedB = scratch(tiling.columns, tile.bStride);
  k.forRange(0, spec.k, tiling.depth, [&](Value first) { slice(first); });
}

void GemmEmitter::slice(Value first) {
  Value depth = k.minimum(k.sub(k.index(spec.k), first), tiling.depth);
  bool bTransposed = spec.b.columnStride != 1;
  callPack(k, tile.bStride,
           {element(b, spec.b, first, column), bTransposed ? spec.b.columnStride : spec.b.rowStride,
            bTransposed, depth, columns},
           packedB);
  Value always =
      arith::ConstantOp::create(k.builder(), k.location(), k.builder().getBoolAttr(true));
  Value accumulate = spec.accumulate ? always : k.less(k.index(0), first);
  k.forRange(0, rows, tiling.blockRows, [&](Value i) {
    Value count = k.minimum(k.sub(rows, i), tiling.blockRows), blockRow = k.add(row, i);
    bool aTransposed = spec.a.columnStride == 1;
    callPack(k, tile.rows,
             {element(a, spec.a, blockRow, first),
              aTransposed ? spec.a.rowStride : spec.a.columnStride, aTransposed, depth, count},
             packedA);
    callGemmBlock(k, {paddedDepth(k, depth), count, columns, packedA, packedB,
                      element(c, spec.c, blockRow, column), spec.c.rowStride, accumulate});
  });
}

} // namespace

func::FuncOp emitGemm(ModuleOp module, llvm::StringRef name, const GemmSpec &spec,
                      const CpuTarget &target) {
  KernelBuilder k(module, name, target);
  GemmEmitter(k, spec).emit();
  return k.finish();
}

} // namespace gradc::codegen

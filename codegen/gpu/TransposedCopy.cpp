// See TransposedCopy.h.
#include "codegen/gpu/TransposedCopy.h"

#include "codegen/gpu/BlockPrinter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace gradc::codegen::gpu {
namespace {

constexpr int64_t tile = 64;
constexpr int64_t piecesOfRow = tile / transposedBytes;
/// Rows of the tile in shared memory: 16 bytes more, so that a column's bytes lie in several banks.
constexpr int64_t sharedStride = tile + transposedBytes;

class TransposePrinter {
public:
  TransposePrinter(BlockPrinter &k, int64_t rows, int64_t columns)
      : k(k), rows(rows), columns(columns), staged(k.shared(tile * sharedStride / 4)),
        byte(k.builder().getI8Type()), piece(VectorType::get({transposedBytes}, byte)) {}

  void print() {
    int64_t across = llvm::divideCeilSigned(columns, tile);
    Value firstRow = k.mul(k.divide(k.task(), across), tile);
    Value firstColumn = k.mul(k.remainder(k.task(), across), tile);
    Value line = k.divide(k.thread(), piecesOfRow);
    Value along = k.mul(k.remainder(k.thread(), piecesOfRow), transposedBytes);

    Value row = k.add(firstRow, line), column = k.add(firstColumn, along);
    k.ifTrue(exists(row, column), [&] {
      Value from = at(k.buffers()[0], k.add(k.mul(row, columns), column));
      Value to = at(staged, k.add(k.mul(line, sharedStride), along));
      store(load(piece, from, transposedBytes), to, transposedBytes);
    });
    k.barrier();
    Value outRow = k.add(firstColumn, line), outColumn = k.add(firstRow, along);
    k.ifTrue(exists(outColumn, outRow), [&] {
      Value to = at(k.buffers()[1], k.add(k.mul(outRow, rows), outColumn));
      store(columnPiece(line, along), to, transposedBytes);
    });
  }

private:
  Value exists(Value row, Value column) {
    return k.both(k.less(row, k.index(rows)), k.less(column, k.index(columns)));
  }

  /// The bytes of 16 rows in one column of the tile.
  Value columnPiece(Value column, Value firstRow) {
    OpBuilder &b = k.builder();
    Value bytes = LLVM::PoisonOp::create(b, k.location(), piece);
    for (int64_t i = 0; i < transposedBytes; ++i) {
      Value from = at(staged, k.add(k.mul(k.add(firstRow, i), sharedStride), column));
      bytes =
          LLVM::InsertElementOp::create(b, k.location(), bytes, load(byte, from, 1), k.index(i));
    }
    return bytes;
  }

  Value at(Value base, Value offset) {
    return LLVM::GEPOp::create(k.builder(), k.location(), base.getType(), byte, base,
                               ValueRange{offset});
  }
  Value load(Type type, Value from, unsigned alignment) {
    return LLVM::LoadOp::create(k.builder(), k.location(), type, from, alignment);
  }
  void store(Value value, Value to, unsigned alignment) {
    LLVM::StoreOp::create(k.builder(), k.location(), value, to, alignment);
  }

  BlockPrinter &k;
  int64_t rows, columns;
  Value staged;
  Type byte;
  VectorType piece;
};

} // namespace

int64_t transposedCopyBlocks(int64_t rows, int64_t columns) {
  return llvm::divideCeilSigned(rows, tile) * llvm::divideCeilSigned(columns, tile);
}

KernelWork transposedCopyWork(int64_t rows, int64_t columns) {
  KernelWork work;
  work.buffers = {{rows * columns, 0}, {0, rows * columns}};
  return work;
}

LLVM::LLVMFuncOp emitTransposedCopy(ModuleOp module, StringRef name, int64_t rows, int64_t columns,
                                    const GpuTarget &target) {
  BlockPrinter k(module, name, {true, true}, tile * piecesOfRow, target.vectors(1));
  TransposePrinter(k, rows, columns).print();
  return k.finish();
}

} // namespace gradc::codegen::gpu

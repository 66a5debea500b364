// See Documents.h.
#include "codegen/gpu/Documents.h"

#include "codegen/gpu/BlockPrinter.h"

using namespace mlir;

namespace gradc::codegen::gpu {

int64_t taskCount(const DocumentsSpec &spec, int64_t extent) { return extent / spec.seq; }

/// Where the document after the last separator among `bits` (i32) begins: the separators are those
/// of 32 tokens from `first` on; `before` where there is none.
static Value startAfterLast(BlockPrinter &k, Value bits, Value first, Value before) {
  OpBuilder &b = k.builder();
  Value zeros = LLVM::CountLeadingZerosOp::create(b, k.location(), k.v.i32, bits,
                                                  /*is_zero_poison=*/false);
  Value after =
      k.sub(k.index(warpThreads), arith::ExtUIOp::create(b, k.location(), k.v.i64, zeros));
  Value none = k.equal(bits, k.v.constant(k.v.i32, 0));
  return k.select(none, before, k.add(first, after));
}

KernelWork documentsWork(const DocumentsSpec &spec, int64_t tokens) {
  constexpr int64_t bytes = 4;
  // Threads beyond the end of a row read its first token.
  int64_t visited = (spec.seq + warpThreads - 1) / warpThreads * warpThreads;
  KernelWork work;
  work.buffers = {
      {tokens / spec.seq * visited * bytes, 0}, {0, tokens * bytes}, {0, tokens * bytes}};
  return work;
}

LLVM::LLVMFuncOp emitDocuments(ModuleOp module, StringRef name, const DocumentsSpec &spec,
                               const GpuTarget &target) {
  BlockPrinter k(module, name, {true, true, true}, warpThreads, target.vectors(1));
  OpBuilder &b = k.builder();
  Value row = k.mul(k.task(), spec.seq), separator = k.index(spec.separator);
  Value tokens = k.at(k.buffers()[0], row), firstKeys = k.at(k.buffers()[1], row);
  Value positions = k.at(k.buffers()[2], row);
  Value one = k.v.constant(k.v.i32, 1);
  Value lane = arith::TruncIOp::create(b, k.location(), k.v.i32, k.thread());
  Value bit = arith::ShLIOp::create(b, k.location(), one, lane);
  Value before = arith::SubIOp::create(b, k.location(), bit, one); // bits of the threads below

  auto step = [&](Value first, ArrayRef<Value> carried) {
    Value place = k.add(first, k.thread());
    Value exists = k.less(place, k.index(spec.seq));
    Value safe = k.select(exists, place, k.index(0));
    Value ends = k.both(exists, k.equal(k.loadInt(k.at(tokens, safe)), separator));
    Value bits = k.ballot(ends);
    Value below = arith::AndIOp::create(b, k.location(), bits, before);
    Value start = startAfterLast(k, below, first, carried[0]);
    k.ifTrue(exists, [&] {
      k.storeInt(start, k.at(firstKeys, place));
      k.storeInt(k.sub(place, start), k.at(positions, place));
    });
    return SmallVector<Value>{startAfterLast(k, bits, first, carried[0])};
  };
  k.forRange(k.index(0), k.index(spec.seq), warpThreads, k.index(0), step);
  return k.finish();
}

} // namespace gradc::codegen::gpu

// Attention, backward: P and dS are computed anew from each row's lse, a tile at a time
// (AttentionBackwardBlock.h). A group of heads has its blocks of keys first, then those of queries.
#include "codegen/gpu/AttentionBackwardBlock.h"

using namespace mlir;

namespace gradc::codegen::gpu {

LLVM::LLVMFuncOp emitAttentionBackward(ModuleOp module, StringRef name, const AttentionSpec &spec,
                                       const GpuTarget &target, int64_t keyHeads) {
  int64_t threads = keySchedule(spec).threads();
  assert(threads == querySchedule(spec).threads() && "blocks of one launch");
  SmallVector<bool> noAlias(9 + spec.maskBuffers(), false);
  BlockPrinter printer(module, name, noAlias, threads, target.vectors(1), backwardRegisters(spec));
  Emit e(printer);
  Val memory = e.of(printer.dynamicShared(backwardSharedBytes(spec))), task = e.task();
  int64_t blocks = keyHeads * backwardBlocksOfKeyHead(spec);
  Val group = task / blocks, ofGroup = task % blocks;
  int64_t before = 0; // blocks of a group, of the roles before
  for (const BackwardRole &role : backwardRoles(spec)) {
    int64_t behind = before + blocksOfKeyHead(spec, role) * keyHeads;
    Val isIts = e.less(ofGroup, behind);
    if (before > 0)
      isIts = isIts & e.less(e.number(before - 1), ofGroup);
    e.when(isIts, {}, [&] {
      BackwardBlock(printer, spec, role, memory, printer.buffers())
          .emit(ofGroup - before, group, keyHeads);
    });
    before = behind;
  }
  return printer.finish();
}

} // namespace gradc::codegen::gpu

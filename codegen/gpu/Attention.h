// Attention on GPUs: the buffers and the meaning are those of codegen/cpu/Attention.h. Forward: a
// block owns a tile of one head's queries and passes over the keys that they see. Backward: one
// launch, of whose blocks some own keys (dk, dv) and others queries (dq); each computes what it
// needs of the scores and of rowsum(dO * O) itself, so that no block waits for another and the
// order of all sums is fixed. docs/design/gpu.md has the design.
//
// Elements of bf16 and f16 are multiplied by matrix instructions and summed in f32; weights are
// rounded to the elements' dtype before they are multiplied. f32 is f32 throughout.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/kernels/AttentionSpec.h"
#include "ir/KernelLibrary.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// Empty when kernels for GPUs can be emitted, else what is wrong with the spec. Refused: head
/// dimensions above 256, whose sums no thread's registers hold.
std::string verifyForGpu(const AttentionSpec &spec);

/// How a block goes about its part.
struct AttentionSchedule {
  int64_t warps = 4;  ///< beside one another along the rows
  int64_t parts = 1;  ///< of a result's columns, each of which has as many warps
  int64_t bands = 1;  ///< of 16 rows, that a warp owns
  int64_t tile = 32;  ///< rows of the other side that are in shared memory at a time
  int64_t chunk = 16; ///< of them that are in registers at a time; forward: all
  int64_t threads() const { return warps * parts * warpThreads; }
  int64_t rows() const { return warps * bands * 16; } ///< that a block owns
};
AttentionSchedule forwardSchedule(const AttentionSpec &spec);
AttentionSchedule keySchedule(const AttentionSpec &spec);   ///< backward, blocks that own keys
AttentionSchedule querySchedule(const AttentionSpec &spec); ///< backward, blocks that own queries

/// Columns of tiles: the head dimension, and zeros up to whole matrix instructions of each part.
int64_t tileColumns(const AttentionSpec &spec);
/// Bytes that a thread reads or writes of a tensor at once: the most that the head dimension, all
/// strides and the alignment are multiples of, of 16, 8, 4 and 2.
int64_t pieceBytes(const AttentionSpec &spec);

/// Whether dk and dv are made by blocks of their own: a thread's registers do not hold both.
bool splitsKeyGradients(const AttentionSpec &spec);

/// With which the assembler was seen to spill nothing.
RegisterRequest forwardRegisters(const AttentionSpec &spec, const GpuTarget &target);
RegisterRequest backwardRegisters(const AttentionSpec &spec);

/// Dynamic shared memory of a block.
int64_t forwardSharedBytes(const AttentionSpec &spec);
int64_t backwardSharedBytes(const AttentionSpec &spec);

/// Blocks come a group of heads after the other, the longest of a group first.
struct AttentionOrder {
  int64_t keyHeads; ///< of a group, with the query heads that read them; divides all of them
  bool fitsCache;   ///< what the groups in flight read fits the second-level cache
};
AttentionOrder forwardOrder(const AttentionSpec &spec);
AttentionOrder backwardOrder(const AttentionSpec &spec);

int64_t attentionForwardBlocks(const AttentionSpec &spec);
int64_t attentionBackwardBlocks(const AttentionSpec &spec);

/// What the launches do; leastBytes is left to who knows the operands. What the blocks of a group
/// read again counts once where it fits the cache. The careful pass over what is not finite is left
/// out.
KernelWork attentionForwardWork(const AttentionSpec &spec);
KernelWork attentionBackwardWork(const AttentionSpec &spec);
/// What the launches ask of the second-level cache, by buffer: every access counted.
std::vector<BufferTraffic> attentionForwardAccesses(const AttentionSpec &spec);
std::vector<BufferTraffic> attentionBackwardAccesses(const AttentionSpec &spec);

/// The spec verifies for GPUs. sharedBytesOf the kernel are dynamic. `keyHeads`: those of a group
/// (AttentionOrder).
mlir::LLVM::LLVMFuncOp emitAttentionForward(mlir::ModuleOp module, llvm::StringRef name,
                                            const AttentionSpec &spec, const GpuTarget &target,
                                            int64_t keyHeads);
mlir::LLVM::LLVMFuncOp emitAttentionBackward(mlir::ModuleOp module, llvm::StringRef name,
                                             const AttentionSpec &spec, const GpuTarget &target,
                                             int64_t keyHeads);

} // namespace gradc::codegen::gpu

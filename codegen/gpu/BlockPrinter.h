// Prints one kernel of a GPU: what KernelPrinter has, a block's threads and what they share.
//
// A kernel is an entry point whose parameters are the addresses of its buffers, in the order of
// the launch (runtime/Abi.h), and the extent as i64. A block is a task; blocks are one-dimensional
// and their number of threads is fixed when the kernel is printed.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/kernels/KernelPrinter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen::gpu {

/// Bytes of dynamic shared memory that launches of a kernel must give it.
int64_t sharedBytesOf(mlir::LLVM::LLVMFuncOp kernel);

class BlockPrinter : public KernelPrinter {
public:
  /// Begins the kernel `name`. `noAlias` says of each buffer whether nothing else that the kernel
  /// touches overlaps it; `threads` is a multiple of a warp's.
  BlockPrinter(mlir::ModuleOp module, llvm::StringRef name, llvm::ArrayRef<bool> noAlias,
               int64_t threads, const VectorTarget &vectors, const RegisterRequest &request = {});

  /// Ends the kernel. Call once, last.
  mlir::LLVM::LLVMFuncOp finish();

  llvm::ArrayRef<Value> buffers() const { return addresses; }
  Value extent() { return function.getArgument(addresses.size()); }
  Value task() const { return block; }    ///< i64: the block's number
  Value thread() const { return member; } ///< i64: in its block
  int64_t threads() const { return threadCount; }

  /// Uninitialised memory of the block, aligned to 16 bytes.
  Value shared(int64_t floats);
  /// `bytes` of memory whose size the launch gives (sharedBytesOf), aligned to 128 bytes; once a
  /// kernel. More than the 48 KB that shared() may take.
  Value dynamicShared(int64_t bytes);

  /// All threads of the block wait for one another; memory written before is seen after.
  void barrier();
  /// The same for `threads` threads, whole warps, which name the same `id` from 1 to 15.
  void barrier(Value id, int64_t threads);
  /// The same for the threads of a warp.
  void warpBarrier();

  // Exchange among the threads of a warp, all of which must come by.
  /// x (f32) of the thread whose number in the warp differs in the bits of `distance`.
  Value exchange(Value x, int64_t distance);
  /// x (i32) of the thread of that number (i32) in the warp.
  Value ofThread(Value x, Value thread);
  /// Bit t (of an i32) is the condition of thread t.
  Value ballot(Value condition);

private:
  mlir::ModuleOp module;
  mlir::LLVM::LLVMFuncOp function;
  int64_t threadCount;
  int64_t sharedCount = 0;
  llvm::SmallVector<Value> addresses;
  Value block, member;
};

} // namespace gradc::codegen::gpu

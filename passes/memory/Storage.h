// Where every value of a program lives, and the commands that result.
//
// A value's storage is a buffer, a byte offset in it, and a row stride. Views share the buffer of
// what they view; operands of a concat are written into its buffer; a result takes over an
// operand's buffer where the op allows it and nothing reads the operand later. Everything else gets
// a buffer of its own with a lifespan in command indices, which the planner places.
#pragma once

#include "ir/KernelLibrary.h"
#include "passes/memory/Lifetimes.h"
#include "passes/memory/StateLayout.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <vector>

namespace gradc {

enum class Space { state, arena, constant };

/// A piece of memory with a lifespan. State and constants have their offset from the start; the
/// arena's is set by the planner.
struct MemoryBuffer {
  Space space = Space::arena;
  int64_t size = 0;
  int64_t lower = 0, upper = 0; ///< half-open lifespan in command indices; arena only
  int64_t offset = 0;
  int64_t besideUntil = -1; ///< the last index at which a command of stream 1 may use it, or -1
};

struct Storage {
  int32_t buffer = -1;
  int64_t offset = 0;     ///< bytes into the buffer
  int64_t rowStride = 0;  ///< elements; 0: contiguous
  int64_t loopStride = 0; ///< bytes a microbatch
  bool operator==(const Storage &) const = default;
};

/// Bytes of all rows of a tensor; with a row stride (in elements) those between them, too.
inline int64_t paddedBytes(mlir::Type type, int64_t rowStride) {
  int64_t columns = nn::rowSpaceOf(type).columns;
  return rowStride == 0 ? nn::byteSize(type) : nn::byteSize(type) / columns * rowStride;
}

/// One command. `op` is the nn op it runs; for a copy or a fill, a fused op in `scratch`.
struct Command {
  mlir::Operation *op = nullptr;
  llvm::SmallVector<Storage> operands, results;
  llvm::SmallVector<int64_t> rowStrides, alignments; ///< of launches: their layout
  KernelGeometry geometry;                           ///< of launches
  std::optional<KernelWork> work;                    ///< of launches that the target counts
  int32_t workspace = -1;                            ///< buffer index, or -1
  int64_t workspaceBytes = 0;
  bool isGemm = false; ///< a product by the runtime's library
  int64_t stream = 0;  ///< see passes/memory/Streams.h

  KernelLayout layout() const { return {rowStrides, alignments}; }
};

struct ProgramStorage {
  mlir::func::FuncOp function;
  llvm::SmallVector<MemoryBuffer> buffers;
  /// Commands before, in, and after the loop over microbatches; without a loop all are in `before`.
  std::vector<Command> before, body, after;
  int64_t loopCount = 0;        ///< 0: no loop
  int32_t besideWorkspace = -1; ///< the one buffer in which commands of stream 1 work, or -1
  /// Storage of each value that the function returns.
  llvm::SmallVector<Storage> returned;
  /// Home of the fused ops that copy and fill; never part of the function.
  std::unique_ptr<mlir::Block> scratch = std::make_unique<mlir::Block>();

  /// All commands, in order.
  auto commands() const { return llvm::concat<const Command>(before, body, after); }
  /// Whether any runs beside others.
  bool hasStreams() const {
    return llvm::any_of(commands(), [](const Command &command) { return command.stream != 0; });
  }
};

/// Assigns storage for one program; with `streams` 1 as if no command ran beside another. Emits
/// diagnostics for what cannot be placed.
llvm::FailureOr<ProgramStorage> assignStorage(mlir::func::FuncOp function, StateLayout &state,
                                              ConstantLayout &constants,
                                              const KernelLibrary &library, int64_t streams = 2);

} // namespace gradc

// Which commands run beside the others: the pass assign-streams marks their ops, the memory plan
// keeps what they use for as long as they may run.
#pragma once

#include "mlir/IR/Operation.h"

namespace gradc {

/// The number of an op's stream; 0 where it is not there.
inline constexpr llvm::StringLiteral streamAttr = "nn.stream";

/// A command of stream 1 may run beside so many of stream 0 that follow it: as much as lies between
/// two products of weights in a layer's backward. More would keep more memory for it.
inline constexpr int64_t streamOverlap = 4;

int64_t assignedStream(mlir::Operation *op);

/// Whether the op is one that runs, and no view or constant. A loop is none, but its body has some.
bool isCommand(mlir::Operation &op);

/// The last op of the block that `op`, being on stream 1, may run beside: a command of stream 0,
/// the loop over microbatches before which streams join, or the block's terminator.
mlir::Operation *lastBeside(mlir::Operation *op);

} // namespace gradc

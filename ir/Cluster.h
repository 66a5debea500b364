// From a cluster of row ops to the row program that computes it.
#pragma once

#include "ir/Nn.h"

namespace gradc::nn {

/// The row program of a fused op. Buffers are the op's operands in order (less those that are
/// splat constants, which become immediates) and then its results.
struct ClusterProgram {
  row::Program program;
  /// Rows of a launch; elements where the program is flat.
  int64_t extent = 0;
  /// For each operand of the op, its buffer in the program; -1 for an immediate.
  llvm::SmallVector<int32_t> operandBuffers;
  /// For each result, its buffer.
  llvm::SmallVector<int32_t> resultBuffers;
};

/// `rowStrides` has, for each operand and then each result, elements from row to row; 0 (or an
/// empty list) stands for contiguous.
ClusterProgram buildClusterProgram(FusedOp op, llvm::ArrayRef<int64_t> rowStrides = {});

/// The rows and columns that all ops of a cluster share.
RowSpace rowSpaceOf(FusedOp op);

} // namespace gradc::nn

// Forward and backward of a training step over its microbatches.
#pragma once

#include "passes/ProgramBuilder.h"

namespace gradc {

/// What a training program reads besides parameters: what differs from microbatch to microbatch,
/// with a leading dimension of microbatches (tokens, targets[, first row]), and what does not
/// ([seed, step]).
struct StepInputs {
  llvm::SmallVector<mlir::Value> batch, shared;
};

struct Accumulation {
  mlir::func::FuncOp lossAndGradients;
  int64_t microbatches;
  size_t gradients; ///< results of lossAndGradients after the loss; magnitudes follow them

  /// The type of one input for all microbatches.
  mlir::RankedTensorType stacked(mlir::Type type) const;

  /// Returns the mean loss, then the gradients, which are `scale` times too large where there is
  /// one, and the largest magnitudes that the model's records ask for; sets `valid` to the number
  /// of labels. Gradients and loss are sums over all microbatches divided by all their labels, so
  /// that a split changes nothing. `values` are the arguments of the function before its inputs.
  llvm::SmallVector<mlir::Value> run(ProgramBuilder &program, mlir::ValueRange values,
                                     const StepInputs &inputs, mlir::Value scale,
                                     mlir::Value &valid) const;

private:
  llvm::SmallVector<mlir::Value> call(mlir::OpBuilder &b, mlir::ValueRange values,
                                      llvm::ArrayRef<mlir::Value> batch,
                                      llvm::ArrayRef<mlir::Value> shared, mlir::Value seed) const;
  llvm::SmallVector<mlir::Value> runOnce(mlir::OpBuilder &b, mlir::ValueRange values,
                                         const StepInputs &inputs, mlir::Value seed) const;
  llvm::SmallVector<mlir::Value> runAll(mlir::OpBuilder &b, mlir::Location loc,
                                        mlir::ValueRange values, const StepInputs &inputs,
                                        mlir::Value seed) const;
};

} // namespace gradc

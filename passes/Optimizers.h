// The optimizers that a training step can use: a table, a row each. Adding one touches its op's
// definition and this table.
#pragma once

#include "ir/Nn.h"

namespace gradc {

struct Optimizer {
  llvm::StringRef name;
  /// Names of the state tensors that each parameter carries, shaped as it is.
  llvm::SmallVector<llvm::StringRef> stateSlots;
  /// Run-time scalars, in the order in which `update` takes them.
  llvm::SmallVector<llvm::StringRef> scalars;
  /// Builds the update of one parameter: returns its new value and then its new state.
  llvm::SmallVector<mlir::Value> (*update)(mlir::OpBuilder &builder, mlir::Location loc,
                                           mlir::Value parameter, mlir::Value gradient,
                                           mlir::ValueRange state, mlir::Value gradientScale,
                                           mlir::ValueRange scalars, bool decay);
};

/// The optimizer of this name, or null.
const Optimizer *findOptimizer(llvm::StringRef name);

/// Names of all optimizers, for messages: "adamw, sgd, lion".
std::string optimizerNames();

} // namespace gradc

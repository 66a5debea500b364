// When each op of a program runs and each value is needed for the last time.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

/// Command indices of a function. A microbatches loop has three parts: its begin (where carried
/// values get their first value), its body, and its end (the body's yield).
class Lifetimes {
public:
  explicit Lifetimes(mlir::func::FuncOp function);

  /// Index at which an op runs; of a loop, its begin.
  int64_t index(mlir::Operation *op) const { return indices.lookup(op); }
  /// Index of a loop's end.
  int64_t loopEnd(nn::MicrobatchesOp loop) const;
  /// Index of the function's return, after every command.
  int64_t end() const { return last; }

  /// Index of the last command that reads the value: its definition where nothing does. A value
  /// from outside a loop that the loop's body reads is needed until the loop ends.
  int64_t lastUse(mlir::Value value) const;

private:
  void number(mlir::Block &block);
  llvm::DenseMap<mlir::Operation *, int64_t> indices;
  int64_t last = 0;
};

} // namespace gradc

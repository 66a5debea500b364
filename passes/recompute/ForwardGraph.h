// What recompute decides about: the forward values of @loss_and_gradients that its backward reads,
// and the layers of the model, found from the graph alone.
//
// A layer is a stretch of the forward between two values through which everything after them
// depends on what came before (the residual stream); layers whose ops are equal are one kind.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace gradc::recompute {

using ValueSet = llvm::SetVector<mlir::Value>;

/// Ops of one stretch of the forward, in order. `output` is the one value that leaves it, besides
/// what the backward reads; null for the last stretch.
struct Stretch {
  llvm::SmallVector<mlir::Operation *> ops;
  mlir::Value output;
  int kind = -1; ///< equal for layers whose ops are equal; -1 for the last stretch
};

class ForwardGraph {
public:
  /// `function`: @loss_and_gradients, whose last argument is the gradient of the loss.
  explicit ForwardGraph(mlir::func::FuncOp function);

  /// Ops that do not depend on the loss's gradient, in order.
  llvm::ArrayRef<mlir::Operation *> forward() const { return forwardOps; }
  llvm::ArrayRef<mlir::Operation *> backward() const { return backwardOps; }
  bool isBackward(mlir::Value value) const { return ofGradient.contains(value); }

  /// Values made by forward ops that the backward reads, views looked through, constants left out.
  const ValueSet &needed() const { return neededValues; }

  /// The forward cut into layers and what stands before, between and after them.
  llvm::ArrayRef<Stretch> stretches() const { return parts; }

private:
  void findNeeded();
  void findStretches();
  void findKinds();

  mlir::Block &body;
  llvm::SmallVector<mlir::Operation *> forwardOps, backwardOps;
  llvm::DenseSet<mlir::Value> ofGradient;
  ValueSet neededValues;
  std::vector<Stretch> parts;
};

/// The value whose memory a view shows; the value itself where it is no view of one value.
mlir::Value baseOf(mlir::Value value);
/// Whether the value is there for the whole step: an argument, a constant, a low copy of a
/// parameter (which becomes state of its own), or integers (positions of tokens, made of the inputs
/// and read by every layer).
bool isPersistent(mlir::Value value);
/// Whether it costs next to nothing to keep: a statistic of something larger.
bool isStatistic(mlir::Value value);

} // namespace gradc::recompute

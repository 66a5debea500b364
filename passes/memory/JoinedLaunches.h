// Ops that one launch computes: the pass join-launches marks them, the memory plan treats them as
// running at the same time, and what is emitted for them is a launch in parts.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

namespace gradc {

/// The number of an op's group; ops of a group follow one another in their block.
inline constexpr llvm::StringLiteral joinedAttr = "nn.joined";

/// Null where the op is of no group.
inline mlir::IntegerAttr joinedGroup(mlir::Operation *op) {
  return op->getAttrOfType<mlir::IntegerAttr>(joinedAttr);
}

} // namespace gradc

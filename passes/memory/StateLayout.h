// Offsets of everything that lives between steps: parameters, optimizer state, inputs, scalars and
// outputs. One layout for all programs of a module: a slot is known by role, name and part.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/MapVector.h"

namespace gradc {

struct StateSlot {
  mlir::DictionaryAttr slot;      ///< {role, name[, slot]}
  mlir::DictionaryAttr parameter; ///< nn.param, or null
  mlir::RankedTensorType type;
  int64_t offset = 0; ///< bytes from the start of the state space
};

class StateLayout {
public:
  /// The slot for this key, placed on first sight, 64-byte aligned.
  const StateSlot &add(mlir::DictionaryAttr slot, mlir::DictionaryAttr parameter,
                       mlir::RankedTensorType type);

  /// Bytes that belong to no slot: what the runtime itself keeps there. Their offset.
  int64_t reserve(int64_t bytes);

  int64_t bytes() const { return end; }
  const llvm::MapVector<mlir::Attribute, StateSlot> &slots() const { return placed; }

private:
  llvm::MapVector<mlir::Attribute, StateSlot> placed;
  int64_t end = 0;
};

/// Read-only data: constants that a kernel reads from memory, each placed once.
class ConstantLayout {
public:
  int64_t add(mlir::ElementsAttr value);
  int64_t bytes() const { return end; }
  /// In order of offsets; each at a multiple of 64.
  llvm::ArrayRef<std::pair<mlir::ElementsAttr, int64_t>> entries() const { return list; }

private:
  llvm::DenseMap<mlir::Attribute, int64_t> offsets;
  llvm::SmallVector<std::pair<mlir::ElementsAttr, int64_t>> list;
  int64_t end = 0;
};

} // namespace gradc

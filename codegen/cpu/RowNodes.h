// Prints the nodes of a row program: once for each row, or for a vector of a row's columns.
#pragma once

#include "codegen/cpu/RandomNumbers.h"
#include "codegen/cpu/Vectors.h"
#include "ir/row/Loops.h"

#include <map>

namespace gradc::codegen {

/// What is known about the row being computed.
struct RowState {
  mlir::Value index; ///< i64; null in a flat program
  llvm::SmallVector<mlir::Value>
      pointers;                     ///< a buffer: matrices at this row, others at their start
  std::vector<mlir::Value> scalars; ///< a node: its value in this row, null if not computed
  std::vector<mlir::Value> splats;  ///< a node: the same as a vector
};

/// A few vectors of consecutive columns.
struct Columns {
  mlir::Value first; ///< i64
  int64_t vectors = 1;
  mlir::Value lastMask; ///< lanes of the last vector that exist; null: all
  mlir::Value mask(int64_t vector) const {
    return vector + 1 == vectors ? lastMask : mlir::Value();
  }
};

/// Values of column-level nodes in one vector of columns.
using ColumnValues = std::vector<mlir::Value>;

class RowNodes {
public:
  RowNodes(const Vectors &vectors, const row::Program &program, const row::Loops &loops);

  /// True for nodes that are the same in every row: constants, scalars and what follows from them.
  bool sameInAllRows(row::NodeId id) const { return programLevel[id]; }

  /// Computes a row-level node whose operands are computed, reductions and constants apart.
  void computeScalar(RowState &row, row::NodeId id) const;

  /// A row-level node's value as its user takes it; constants are made on the spot.
  mlir::Value scalar(const RowState &row, row::NodeId id, row::ValueType type) const;

  /// Makes vectors of the row-level values that a loop uses.
  void splatUses(RowState &row, const row::Loop &loop) const;

  /// Computes all nodes of a loop in each vector of `columns`, calling `use` after each vector.
  void computeColumns(const RowState &row, const row::Loop &loop, const Columns &columns,
                      llvm::function_ref<void(int64_t vector, const ColumnValues &)> use) const;

  /// Any node as a vector.
  mlir::Value vector(const RowState &row, const ColumnValues &values, row::NodeId id,
                     row::ValueType type) const;

  /// Address of a matrix, column or columnPartial buffer's element in a vector of columns.
  mlir::Value address(const RowState &row, int32_t buffer, const Columns &columns,
                      int64_t vector) const;

  row::ValueType type(row::NodeId id) const { return types[id]; }

private:
  mlir::Value compute(const RowState &row, const ColumnValues &values, row::NodeId id,
                      const Columns &columns, int64_t vector) const;
  llvm::SmallVector<mlir::Value> uniforms(const RowState &row, const row::Node &node,
                                          const Columns &columns) const;
  mlir::Value constant(row::NodeId id, row::ValueType type, bool vector) const;

  const Vectors &v;
  const row::Program &program;
  const row::Loops &loops;
  std::vector<row::ValueType> types;
  std::vector<bool> programLevel;
};

} // namespace gradc::codegen

// Prints the nodes of a row program: once for each row, or for a vector of a row's columns.
#pragma once

#include "codegen/kernels/RandomNumbers.h"
#include "codegen/kernels/Vectors.h"
#include "ir/row/Loops.h"

#include <functional>
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

/// What is known of the matrices and columns in memory: by buffer and vector, what was last loaded
/// from there or stored to it.
using HeldVectors = std::map<std::pair<int32_t, int64_t>, mlir::Value>;

/// A few vectors of a row's columns.
struct Columns {
  mlir::Value first; ///< i64
  int64_t vectors = 1;
  mlir::Value lastMask;        ///< lanes of the last vector that exist; null: all
  int64_t stride = 0;          ///< columns from vector to vector; 0: they are consecutive
  HeldVectors *held = nullptr; ///< null: what is loaded in each use comes from memory
  mlir::Value mask(int64_t vector) const {
    return vector + 1 == vectors ? lastMask : mlir::Value();
  }
};

/// Values of column-level nodes in one vector of columns.
using ColumnValues = std::vector<mlir::Value>;

/// Makes a vector of a `uniform` node's numbers for the consecutive elements from `first` (i64) on,
/// a multiple of the lanes.
using UniformVector = std::function<mlir::Value(const RandomStream &, mlir::Value first)>;

class RowNodes {
public:
  /// `uniformVector`, if any, is used where rows are whole groups of numbers (ir/row/Philox.h).
  RowNodes(const Vectors &vectors, const row::Program &program, const row::Loops &loops,
           UniformVector uniformVector = {});

  /// What all rows share. Sums of columns point to row `partialRow` (i64) of them.
  RowState programState(llvm::ArrayRef<mlir::Value> buffers, mlir::Value partialRow) const;

  /// The state of row `index` (i64) before stage 0.
  RowState rowState(const RowState &shared, mlir::Value index) const;

  /// Row-level values that are known in a stage: before the loop of that number.
  void computeStage(RowState &row, size_t stage) const;
  /// Stores what a stage knows to row buffers.
  void storeStage(const RowState &row, size_t stage) const;

  /// Makes vectors of the row-level values that a loop uses.
  void splatUses(RowState &row, const row::Loop &loop) const;

  /// Computes all nodes of a loop in each vector of `columns`, calling `use` after each vector.
  /// Where vectors are held, the loads of all come before everything else.
  void computeColumns(const RowState &row, const row::Loop &loop, const Columns &columns,
                      llvm::function_ref<void(int64_t vector, const ColumnValues &)> use) const;

  /// Stores to a matrix; where vectors are held, also for the program's reloads.
  void store(const RowState &row, int32_t buffer, const Columns &columns, int64_t vector,
             mlir::Value value) const;

  /// Any node as a vector.
  mlir::Value vector(const RowState &row, const ColumnValues &values, row::NodeId id,
                     row::ValueType type) const;

  /// Address of a matrix, column or columnPartial buffer's element in a vector of columns.
  mlir::Value address(const RowState &row, int32_t buffer, const Columns &columns,
                      int64_t vector) const;
  /// Columns from the first of `columns` to the first of one of its vectors.
  int64_t offset(const Columns &columns, int64_t vector) const {
    return vector * (columns.stride == 0 ? v.lanes : columns.stride);
  }

  /// Two values of a reduction's operand as one; the value that changes nothing, as a vector.
  mlir::Value combine(row::NodeId reduction, mlir::Value x, mlir::Value y) const;
  mlir::Value identity(row::NodeId reduction) const;

  /// What an effect stores, before it is rounded to the buffer's type.
  row::ValueType storedType(const row::Effect &effect) const;

private:
  /// True for nodes that are the same in every row: constants, scalars and what follows from them.
  bool sameInAllRows(row::NodeId id) const { return programLevel[id]; }
  /// Computes a row-level node whose operands are computed, reductions and constants apart.
  void computeScalar(RowState &row, row::NodeId id) const;
  /// A row-level node's value as its user takes it; constants are made on the spot.
  mlir::Value scalar(const RowState &row, row::NodeId id, row::ValueType type) const;
  mlir::Value load(const RowState &row, int32_t buffer, const Columns &columns,
                   int64_t vector) const;
  mlir::Value compute(const RowState &row, const ColumnValues &values, row::NodeId id,
                      const Columns &columns, int64_t vector) const;
  llvm::SmallVector<mlir::Value> uniforms(const RowState &row, const row::Node &node,
                                          const Columns &columns) const;
  mlir::Value constant(row::NodeId id, row::ValueType type, bool vector) const;

  const Vectors &v;
  const row::Program &program;
  const row::Loops &loops;
  UniformVector uniformVector;
  std::vector<row::ValueType> types;
  std::vector<bool> programLevel;
};

} // namespace gradc::codegen

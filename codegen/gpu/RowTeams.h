// The loops of a row program that is not flat, over the teams of a block (RowSchedule.h).
#pragma once

#include "codegen/gpu/BlockPrinter.h"
#include "codegen/gpu/RowSchedule.h"
#include "codegen/kernels/RowNodes.h"

namespace gradc::codegen::gpu {

class RowTeams {
public:
  /// `one`: vectors of one element, for what is left of a row. All outlive the object.
  RowTeams(BlockPrinter &printer, const row::Program &program, const RowSchedule &schedule,
           const Vectors &one);

  /// Prints the kernel's body.
  void emit();

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  // --- rows
  void emitRow(Value index, llvm::MutableArrayRef<Value> sums);
  void emitStage(RowState &row, size_t stage);
  bool overwritesGathered(size_t stage) const;

  // --- columns of a row. `sums` are those of columns, by effect and vector; empty: in memory.
  Columns heldColumns(HeldVectors &held);
  void emitHeldLoop(RowState &row, size_t loop, const Columns &columns,
                    llvm::MutableArrayRef<Value> sums);
  void emitStreamedLoop(RowState &row, size_t loop);
  /// Vectors of rows that are kept: those that an earlier loop knew become known to a step, and
  /// what a step came to know is kept for later loops.
  void takeKept(const Vectors &by, size_t loop, const Columns &columns);
  void keep(const Vectors &by, size_t loop, const Columns &columns);
  bool touches(size_t loop, int32_t buffer) const;
  bool keepsAll() const { return schedule.keptColumns == program.columns; }
  Value keptAddress(const KeptRow &row, const Columns &columns, int64_t vector);
  /// `keeps`: whether the step's columns are among those that are kept.
  using StepBody =
      llvm::function_ref<void(const Columns &, bool keeps, llvm::MutableArrayRef<Value>)>;
  void forSteps(llvm::SmallVectorImpl<Value> &carried, StepBody body);
  llvm::SmallVector<Values> emitTail(const RowState &row, size_t loop);
  llvm::SmallVector<Values> emitStep(const RowNodes &by, const RowState &row, const row::Loop &loop,
                                     const Columns &columns, llvm::MutableArrayRef<Value> sums);
  void addToSum(const RowState &row, int32_t effect, const Columns &columns, int64_t vector,
                Value x);

  // --- across threads
  void teamBarrier();
  /// `parts`: vectors of the thread, by reduction; `tails`: likewise, of its last element, if any.
  void finishReductions(RowState &row, size_t loop, llvm::ArrayRef<Values> parts,
                        llvm::ArrayRef<Values> tails);
  Value combineWarp(row::NodeId reduction, Value x);
  Value combineAll(row::NodeId reduction, Values values) const;

  // --- sums of columns
  void zeroSums();
  void storeSums(llvm::ArrayRef<Value> sums);
  Value addTeams(Value part);

  BlockPrinter &k;
  const row::Program &program;
  RowSchedule schedule;
  row::Loops loops;
  const Vectors &one;
  RowNodes nodes, elements;
  int64_t wholeVectors;                     ///< columns of a row that vectors take
  llvm::SmallVector<int32_t> accumulations; ///< effects that sum columns
  Value team, member;                       ///< of the block, and thread in it
  Value group, slice;                       ///< of rows, and of columns: the task's
  RowState shared;
  Value keptRows; ///< shared memory; null where none are kept
  Values slots;   ///< a loop: the team's shared memory for its reductions; null without
};

} // namespace gradc::codegen::gpu

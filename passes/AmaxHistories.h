// Delayed scaling's memory: for each tensor that fp8 quantizes, its largest magnitude in each of
// the last steps, newest first. Zeros before there were any.
#pragma once

#include "passes/ProgramBuilder.h"

namespace gradc {

/// The attributes nn.record of a function's arguments: {name, slot}.
llvm::SmallVector<mlir::DictionaryAttr> recordsOf(mlir::func::FuncOp function);

/// Makes a program's quantizations by the scales of `records` ones by their tensors' own
/// magnitudes: evaluation needs no history.
void scaleByOwnMagnitudes(mlir::func::FuncOp function, mlir::ValueRange records);

/// The histories of one training program.
class AmaxHistories {
public:
  /// Steps that a history holds.
  static constexpr int64_t steps = 16;

  explicit AmaxHistories(llvm::ArrayRef<mlir::DictionaryAttr> records) : records(records) {}

  /// Makes the histories arguments of the program, as optimizer state.
  void addArguments(ProgramBuilder &program);
  /// The largest magnitude of each.
  llvm::SmallVector<mlir::Value> largest(ProgramBuilder &program) const;
  /// Returns the histories with this step's magnitudes, scalars, in front.
  void returnNext(ProgramBuilder &program, llvm::ArrayRef<mlir::Value> magnitudes) const;

private:
  mlir::DictionaryAttr slot(ProgramBuilder &program, mlir::DictionaryAttr record) const;

  llvm::ArrayRef<mlir::DictionaryAttr> records;
  llvm::SmallVector<mlir::Value> histories; ///< [1, steps]
};

} // namespace gradc

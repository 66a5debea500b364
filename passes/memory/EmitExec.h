// From placed programs to the exec dialect.
#pragma once

#include "ir/Exec.h"
#include "passes/memory/Storage.h"

#include <map>

namespace gradc {

/// Emits exec programs into a module, each distinct kernel once.
class ExecEmitter {
public:
  explicit ExecEmitter(mlir::ModuleOp module);

  /// Appends the program; every arena buffer has its offset.
  void emit(const ProgramStorage &program);

private:
  void emitCommands(mlir::OpBuilder &builder, const ProgramStorage &program,
                    llvm::ArrayRef<Command> commands);
  void emitLaunch(mlir::OpBuilder &builder, const ProgramStorage &program, const Command &command);
  void emitGemm(mlir::OpBuilder &builder, const ProgramStorage &program, const Command &command);
  exec::BufferAttr buffer(const ProgramStorage &program, const Storage &storage, mlir::Type type);
  exec::BufferAttr workspace(const ProgramStorage &program, const Command &command);
  exec::MatrixAttr matrix(const ProgramStorage &program, const Storage &storage, mlir::Type type,
                          bool transposed);
  exec::EpilogueAttr epilogue(const ProgramStorage &program, const Command &command);
  exec::MatrixAttr row(const ProgramStorage &program, const Storage &storage, mlir::Type type);
  mlir::FlatSymbolRefAttr kernelFor(const Command &command);

  mlir::ModuleOp module;
  mlir::OpBuilder kernelBuilder;
  /// Kernel of each distinct specification (as text).
  std::map<std::string, mlir::FlatSymbolRefAttr> kernels;
};

} // namespace gradc

// From placed programs to the exec dialect.
#pragma once

#include "ir/Exec.h"
#include "passes/memory/Storage.h"

#include <map>

namespace gradc {

/// Emits exec programs into a module, each distinct kernel once.
class ExecEmitter {
public:
  /// Tables of launches in parts get places in `state`.
  ExecEmitter(mlir::ModuleOp module, const KernelLibrary &library, StateLayout &state);

  /// Appends the program; every arena buffer has its offset.
  void emit(const ProgramStorage &program);

private:
  void emitCommands(mlir::OpBuilder &builder, const ProgramStorage &program,
                    llvm::ArrayRef<Command> commands);
  size_t emitGroup(mlir::OpBuilder &builder, const ProgramStorage &program,
                   llvm::ArrayRef<Command> commands, size_t first, mlir::IntegerAttr group);
  /// A launch of one command's kernel, or one in parts.
  void emitLaunch(mlir::OpBuilder &builder, const ProgramStorage &program,
                  llvm::ArrayRef<const Command *> parts);
  void appendBuffers(const ProgramStorage &program, const Command &command,
                     llvm::SmallVectorImpl<mlir::Attribute> &buffers);
  exec::BufferAttr partTable(int64_t bytes);
  void emitGemm(mlir::OpBuilder &builder, const ProgramStorage &program, const Command &command);
  exec::BufferAttr buffer(const ProgramStorage &program, const Storage &storage, mlir::Type type);
  exec::BufferAttr workspace(const ProgramStorage &program, const Command &command);
  exec::MatrixAttr matrix(const ProgramStorage &program, const Storage &storage, mlir::Type type,
                          bool transposed);
  exec::EpilogueAttr epilogue(const ProgramStorage &program, const Command &command);
  exec::MatrixAttr row(const ProgramStorage &program, const Storage &storage, mlir::Type type);
  mlir::FlatSymbolRefAttr kernelFor(const Command &command, bool takesTable);

  mlir::ModuleOp module;
  const KernelLibrary &library;
  StateLayout &state;
  mlir::OpBuilder kernelBuilder;
  /// By signature, and whether it is launched with a table.
  std::map<std::pair<std::string, bool>, mlir::FlatSymbolRefAttr> kernels;
};

} // namespace gradc

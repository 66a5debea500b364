// Builds a program of an executable: a function whose arguments and results are slots, places in
// the executable's state that the runtime knows by name (docs/design/executable.md).
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

class ProgramBuilder {
public:
  /// Starts `@name` at the end of `module`.
  ProgramBuilder(mlir::ModuleOp module, llvm::StringRef name);

  /// A new argument; `parameter` is its nn.param, where it has one.
  mlir::Value argument(mlir::Type type, mlir::DictionaryAttr slot, mlir::Attribute parameter = {});
  void result(mlir::Value value, mlir::DictionaryAttr slot);

  mlir::DictionaryAttr slot(llvm::StringRef role, llvm::StringRef slotName,
                            llvm::StringRef part = {});
  /// The slot of an argument or result of this program alone.
  mlir::DictionaryAttr ownSlot(llvm::StringRef role, llvm::StringRef argument);

  /// Ends the function. Nothing may be built after it.
  void finish();

  mlir::Location location() const { return loc; }
  mlir::OpBuilder builder;
  mlir::func::FuncOp function;

private:
  std::string name;
  mlir::Location loc;
  mlir::Block *body = nullptr;
  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Attribute> argumentAttributes, resultAttributes;
};

/// Clones the body of `callee` on `arguments`; returns what it returned.
llvm::SmallVector<mlir::Value> inlineCall(mlir::OpBuilder &builder, mlir::func::FuncOp callee,
                                          mlir::ValueRange arguments);

} // namespace gradc

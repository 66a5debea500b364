// What makes a module in MLIR a model definition; frontend/ModuleFile.h lists it.
#pragma once

#include "frontend/Import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

/// Checks one module, which it completes as it goes. The first error, one line with its mend, ends
/// the check. `path` begins every error.
class ModuleChecker {
public:
  ModuleChecker(llvm::StringRef path, mlir::ModuleOp module) : path(path), module(module) {}

  /// Its functions, parameters, inputs and results, and what nn.model says; completes nn.param.
  llvm::Error check();
  /// After check(): what the module is, as far as it and `options` agree.
  llvm::Expected<ModelInfo> info(const ImportOptions &options);

private:
  llvm::Error error(const llvm::Twine &message);
  llvm::Error checkContents();
  llvm::Error checkLoss();
  llvm::Error checkLogits();
  llvm::Error completeParameters(mlir::func::FuncOp function);
  llvm::Error checkInputs(mlir::func::FuncOp function, bool equal);
  llvm::Error checkModelAttribute();
  llvm::Error checkShape(ModelInfo &info, const ImportOptions &options);
  llvm::Error checkDocuments(ModelInfo &info, const ImportOptions &options);

  llvm::StringRef path;
  mlir::ModuleOp module;
  mlir::func::FuncOp loss, logits;
};

} // namespace gradc

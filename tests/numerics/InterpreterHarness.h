// Parses functions of the nn dialect for tests that interpret them.
#pragma once

#include "ir/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

namespace gradc::test {

/// A parsed module, its context, and the diagnostics raised since, one a line.
class ParsedModule {
public:
  /// Check `ok()` before anything else.
  explicit ParsedModule(const std::string &text);
  ~ParsedModule();

  bool ok() const { return static_cast<bool>(parsed); }
  mlir::ModuleOp module() { return *parsed; }
  mlir::func::FuncOp function(llvm::StringRef name = "f");
  mlir::MLIRContext &context() { return *ownContext; }
  const std::string &diagnostics() const { return messages; }

private:
  std::unique_ptr<mlir::MLIRContext> ownContext;
  std::string messages;
  mlir::OwningOpRef<mlir::ModuleOp> parsed;
};

/// A tensor of a shape with these values; fewer values than elements repeat.
nn::HostTensor tensorOf(llvm::ArrayRef<int64_t> shape, std::vector<double> values);

/// The gradient, by one argument, of the sum of the function's first result times `weights`, by
/// central differences of its interpretation.
nn::HostTensor centralDifferences(mlir::func::FuncOp function,
                                  llvm::SmallVector<nn::HostTensor> arguments, unsigned argument,
                                  const nn::HostTensor &weights);

/// Names of the dialect's registered ops that implement an interface.
template <typename Interface> std::vector<std::string> opsWith(mlir::MLIRContext &context) {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn"))
    if (name.hasInterface<Interface>())
      names.push_back(name.getStringRef().str());
  return names;
}

} // namespace gradc::test

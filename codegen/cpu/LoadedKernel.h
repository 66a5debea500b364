// Kernels compiled and loaded into this very process: for tests, benches and value checks.
#pragma once

#include "codegen/cpu/Target.h"
#include "runtime/Abi.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace gradc::codegen {

/// A kernel in memory, callable while the object lives.
class LoadedKernel {
public:
  /// Prints the kernel `name` into the module that it is given.
  using Emitter = llvm::function_ref<void(mlir::OpBuilder &, mlir::ModuleOp, llvm::StringRef name)>;

  /// Goes through an object file, as an executable's kernels do.
  static llvm::Expected<LoadedKernel> compile(const CpuTarget &target, Emitter emit);

  LoadedKernel(LoadedKernel &&);
  LoadedKernel &operator=(LoadedKernel &&);
  ~LoadedKernel();

  GradcKernelFn function() const { return kernel; }

private:
  LoadedKernel();
  std::unique_ptr<llvm::orc::LLJIT> jit;
  GradcKernelFn kernel = nullptr;
};

} // namespace gradc::codegen

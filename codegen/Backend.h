// What is particular to a target: the kernels it can make, the code of a planned step, and the
// runtime library that its executables carry. Adding a target adds an implementation of this.
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/KernelLibrary.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace gradc::codegen {

/// The part of the runtime that an executable of a target is linked with.
struct DeviceRuntime {
  /// The GradcDeviceKind (runtime/Device.h) that the executable names.
  std::string deviceSymbol;
  /// What the linker is given besides the runtime itself; archives of ours by their file's name,
  /// which are looked for where the runtime lies.
  llvm::SmallVector<std::string> libraries;
};

class Backend {
public:
  virtual ~Backend() = default;

  /// What the memory plan asks; lives as long as the backend.
  virtual const KernelLibrary &kernels() const = 0;
  virtual DeviceRuntime runtime() const = 0;
  /// What the host's part of an executable is compiled for.
  virtual CpuTarget host() const = 0;

  /// The kernels of a planned module (exec.kernel) as optimised LLVM IR for the machine that runs
  /// them. The module may get a diagnostic besides the error.
  virtual llvm::Expected<std::unique_ptr<llvm::Module>>
  lowerKernels(mlir::ModuleOp planned, llvm::LLVMContext &context) const = 0;
  /// What of them goes into the executable's object file, by their symbols: for the host.
  virtual llvm::Expected<std::unique_ptr<llvm::Module>>
  hostModule(mlir::ModuleOp planned, llvm::LLVMContext &context) const = 0;
  /// Their assembly (PTX) or machine code (a cubin), for a look; an error that says what has it
  /// where the target has none.
  virtual llvm::Expected<std::string> assembly(mlir::ModuleOp planned) const = 0;
  virtual llvm::Expected<std::string> machineCode(mlir::ModuleOp planned) const = 0;
};

} // namespace gradc::codegen

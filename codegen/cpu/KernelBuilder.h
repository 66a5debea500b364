// Builds one kernel function by straight-line C++: scf loops over i64, 32-bit float vectors as wide
// as the machine's registers, and bare pointers. For the kernel families that are not row programs.
//
//     KernelBuilder k(module, name, target);
//     Value x = k.buffer(0), y = k.buffer(1);
//     k.forRange(0, n, k.lanes(), [&](Value i) { k.store(k.load(k.at(x, i)), k.at(y, i)); });
//     k.finish();
//
// Loads and stores need the alignment of one element only.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/kernels/KernelPrinter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace gradc::codegen {

class KernelBuilder : public KernelPrinter {
public:
  using ValueRange = mlir::ValueRange;

  /// A public function with GradcKernelFn's signature.
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target);
  /// A function of this module only, which is never inlined.
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target,
                mlir::FunctionType type);

  /// Ends the function with a return. Call once, last.
  mlir::func::FuncOp finish(ValueRange results = {});

  mlir::ModuleOp module() const { return mod; }
  const CpuTarget &target() const { return cpu; }
  mlir::Type pointerType() const { return v.pointer; }

  // --- arguments
  Value parameter(int index) { return function.getArgument(index); }
  Value buffer(int index); ///< of a kernel: the buffer's address
  Value extent() { return parameter(1); }
  Value task() { return parameter(2); }

  /// Uninitialised floats on the stack, aligned to 64 bytes, for the whole function.
  Value stack(int64_t floats);

private:
  KernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const CpuTarget &target,
                mlir::FunctionType type, bool isPrivate);

  mlir::ModuleOp mod;
  CpuTarget cpu;
  mlir::func::FuncOp function;
};

} // namespace gradc::codegen

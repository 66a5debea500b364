// The kernels that the CPU target can make: a table of families, each with its geometry and its
// emitter. Adding a family touches its own emitter and this table.
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/Exec.h"
#include "ir/KernelLibrary.h"

namespace gradc::codegen {

/// Who makes matrix products: kernels of ours, or the runtime's library (oneDNN).
enum class Products { generated, library };

class CpuKernelLibrary final : public KernelLibrary {
public:
  explicit CpuKernelLibrary(CpuTarget target, Products products = Products::generated)
      : target(std::move(target)), products(products) {}
  /// The library is given products of f32 alone.
  bool emitsProduct(mlir::Operation *product) const override;
  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                           llvm::ArrayRef<int64_t> rowStrides) const override;
  int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const override;

private:
  CpuTarget target;
  Products products;
};

/// Emits every exec.kernel of `module` into a new module of functions with the kernels' names.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp module,
                                                               const CpuTarget &target);

} // namespace gradc::codegen

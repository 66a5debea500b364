// The kernels that the CPU target can make: a table of families, each with its geometry and its
// emitter. Adding a family touches its own emitter and this table.
#pragma once

#include "codegen/cpu/ProductTimes.h"
#include "codegen/cpu/Target.h"
#include "ir/Exec.h"
#include "ir/KernelLibrary.h"

namespace gradc::codegen {

/// Who makes matrix products: kernels of ours, the runtime's library (oneDNN), or for each shape
/// the faster one.
enum class Products { generated, library, faster };

class CpuKernelLibrary final : public KernelLibrary {
public:
  /// `times` outlives the object, and is there where products are the faster ones.
  explicit CpuKernelLibrary(CpuTarget target, Products products = Products::generated,
                            ProductTimes *times = nullptr)
      : target(std::move(target)), products(products), times(times) {}
  /// The library is given products of f32 alone.
  bool emitsProduct(mlir::Operation *product) const override;
  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                           const KernelLayout &layout) const override;
  /// Counted are clusters, whose kernels take one row after another: what its later loops read
  /// again comes from the core's caches.
  std::optional<KernelWork> work(mlir::Operation *op, const KernelLayout &layout) const override;
  RuntimeSizes runtimeSizes(mlir::Operation *op) const override;
  int64_t partTableBytes(int64_t, int64_t) const override { return 0; }
  mlir::Attribute panelsOf(mlir::Operation *reader) const override;
  int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const override;

private:
  CpuTarget target;
  Products products;
  ProductTimes *times;
};

/// Emits every exec.kernel of `module` into a new module of functions with the kernels' names.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp module,
                                                               const CpuTarget &target);

} // namespace gradc::codegen

// The kernels that the GPU target can make: a table of families, each with its geometry, its
// work and its emitter. Matrix products are the library's.
#pragma once

#include "codegen/gpu/GpuTarget.h"
#include "codegen/gpu/Parts.h"
#include "ir/Exec.h"
#include "ir/KernelLibrary.h"

namespace gradc::codegen::gpu {

class GpuKernels final : public KernelLibrary {
public:
  explicit GpuKernels(GpuTarget target) : target(target) {}

  /// A task is a block of threads.
  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                           const KernelLayout &layout) const override;
  std::string limits(mlir::Operation *op) const override;
  int64_t accessBytes() const override { return widestAccess; }
  std::optional<KernelWork> work(mlir::Operation *op, const KernelLayout &layout) const override;
  RuntimeSizes runtimeSizes(mlir::Operation *op) const override;
  int64_t partTableBytes(int64_t parts, int64_t buffers) const override {
    return gpu::partTableBytes(parts, buffers);
  }
  bool emitsProduct(mlir::Operation *) const override { return false; }
  int64_t gemmWorkspaceBytes(int64_t, int64_t, int64_t) const override;
  bool takesEpilogue(mlir::Operation *product) const override;
  mlir::Type biasType(mlir::Operation *product) const override;
  Float8Operands float8Operands(mlir::Operation *product) const override;
  int64_t allowedLossChunkRows() const override;

private:
  GpuTarget target;
};

/// Emits every exec.kernel of `module` into a new module of entry points with the kernels' names;
/// each says its block's threads in nvvm.reqntid.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp module,
                                                               const GpuTarget &target);

} // namespace gradc::codegen::gpu

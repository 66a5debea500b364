// The kernels that the CPU target can make: a table of families, each with its geometry and its
// emitter. Adding a family touches its own emitter and this table.
#pragma once

#include "codegen/cpu/Target.h"
#include "ir/Exec.h"
#include "ir/KernelLibrary.h"

namespace gradc::codegen {

class CpuKernelLibrary final : public KernelLibrary {
public:
  llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                           llvm::ArrayRef<int64_t> rowStrides) const override;
  int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const override;
};

/// Emits every exec.kernel of `module` into a new module of functions with the kernels' names.
llvm::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernels(mlir::ModuleOp module,
                                                               const CpuTarget &target);

} // namespace gradc::codegen

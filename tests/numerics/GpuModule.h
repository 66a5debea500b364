// GPU kernels printed by tests, failing the test where that fails.
#pragma once

#include "codegen/gpu/GpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace gradc::codegen::gpu {

/// A module to print kernels into.
class GpuModule {
public:
  GpuModule();

  mlir::ModuleOp get() { return *module; }

  /// What has been printed as PTX; the module is used up. Empty when the test has failed.
  std::string toPtx(const GpuTarget &target);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Architectures that kernels are made for.
inline constexpr GpuTarget testedTargets[] = {{80}, {90}};

} // namespace gradc::codegen::gpu

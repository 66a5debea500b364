// Declarations of the passes; their documentation stands in Passes.td.
#pragma once

#include "ir/Exec.h"
#include "ir/KernelLibrary.h"
#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace gradc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// Panels of weights for the products of `library`, which must outlive the pass.
std::unique_ptr<mlir::Pass> createWeightPanelsPass(const KernelLibrary &library);

/// The memory plan for the kernels of `library`, which must outlive the pass.
std::unique_ptr<mlir::Pass> createMemoryPlanPass(const KernelLibrary &library);

/// Makes every pass known to gradc-opt's command line.
void registerPasses(const KernelLibrary &library);

} // namespace gradc

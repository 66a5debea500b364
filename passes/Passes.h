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

// Passes that ask for the kernels of `library`, which must outlive them.
std::unique_ptr<mlir::Pass> createQuantizeProductsPass(const KernelLibrary &library);
std::unique_ptr<mlir::Pass> createNarrowBiasesPass(const KernelLibrary &library);
std::unique_ptr<mlir::Pass> createBiasGradientsPass(const KernelLibrary &library);
std::unique_ptr<mlir::Pass> createProductEpiloguesPass(const KernelLibrary &library);
std::unique_ptr<mlir::Pass> createWeightPanelsPass(const KernelLibrary &library);
std::unique_ptr<mlir::Pass> createMemoryPlanPass(const KernelLibrary &library);

/// Which kernels are equal, `library` says, which must outlive the pass.
std::unique_ptr<mlir::Pass> createJoinLaunchesPass(const KernelLibrary &library);

/// Makes every pass known to gradc-opt's command line.
void registerPasses(const KernelLibrary &library);

} // namespace gradc

// What tells kernels apart.
#pragma once

#include "ir/KernelLibrary.h"

namespace gradc {

/// Equal for two commands exactly when one kernel computes both: of a cluster its row program,
/// whose extent is a run-time argument; of other ops their attributes, types (less the sizes that a
/// launch says) and row strides; of all the alignments.
std::string kernelSignature(const KernelLibrary &library, mlir::Operation *op,
                            const KernelLayout &layout);

} // namespace gradc

// Transposition in registers.
#pragma once

#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// Transposes lanes x lanes elements: 4 x 4 within 128 bits, then ever larger blocks.
void transposeSquare(KernelBuilder &k, llvm::SmallVectorImpl<mlir::Value> &rows);

} // namespace gradc::codegen

// Largest magnitudes as the ops that scale by them build them.
#pragma once

#include "ir/Nn.h"

namespace gradc::nn {

/// The largest of some magnitudes, a scalar: `amax` itself where it is one.
mlir::Value largestOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value amax);

} // namespace gradc::nn

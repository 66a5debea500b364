// The `nn.param` dictionary of a parameter: what is in it, and what stands for what is left out.
#pragma once

#include "frontend/GraphBuilder.h"
#include "llvm/Support/Error.h"

namespace gradc {

/// The complete dictionary of a parameter; tensors of two or more dimensions decay.
mlir::DictionaryAttr describeParameter(mlir::Builder &builder, const ParameterSpec &spec);

/// Completes what a user wrote, by the defaults that ModuleFile.h states. Refuses a missing name,
/// keys it does not know and values of another kind.
llvm::Expected<mlir::DictionaryAttr> completeParameter(mlir::DictionaryAttr given,
                                                       mlir::RankedTensorType type);

} // namespace gradc

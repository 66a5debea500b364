// ModelInfo as the module's attribute `nn.model`.
#pragma once

#include "frontend/Import.h"

namespace gradc {

void setModelInfo(mlir::ModuleOp module, const ModelInfo &info);

/// Elements of all arguments that have an `nn.param`.
int64_t parameterElements(mlir::func::FuncOp function);

} // namespace gradc

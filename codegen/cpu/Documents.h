// Where the documents of packed rows begin (nn.documents). A row of tokens holds documents one
// after another, each up to and with a separator.
//
// Buffers, all i32 [extent]: tokens; first keys: the position in its row of the first token of a
// token's document; positions: how many tokens of its document are before a token. The extent is
// the number of tokens, whole rows of them.
#pragma once

#include "codegen/cpu/Target.h"
#include "codegen/kernels/Specs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gradc::codegen {

/// A task is a row.
int64_t taskCount(const DocumentsSpec &spec, int64_t extent);

mlir::func::FuncOp emitDocuments(mlir::ModuleOp module, llvm::StringRef name,
                                 const DocumentsSpec &spec, const CpuTarget &target);

} // namespace gradc::codegen

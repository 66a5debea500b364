// The kernel table of `gradc explain`.
#pragma once

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace gradc {

/// Prints launches, bytes and FLOPs of a step's kernels beside the fewest possible, most bytes
/// first; `metadata` is an executable's (docs/design/executable.md).
void printKernelTable(const llvm::json::Object &metadata, llvm::raw_ostream &out);

} // namespace gradc

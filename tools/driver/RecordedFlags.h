// What a module says of how it came about, so that a compile can go on from it: the phase after
// which it was written, and the flags that went into it.
#pragma once

#include "tools/driver/Compile.h"

namespace gradc {

/// Sets `nn.phase` and `nn.flags` of the module: a dictionary of strings, by the flags' names.
void recordPhase(mlir::ModuleOp module, Phase phase, const CompileRequest &request,
                 const ModelInfo &info);

/// Takes over into `request`, whose `from` is the module's phase, the flags that were decided up to
/// that phase. A flag given otherwise on the command line, or one that the module does not tell, is
/// the user's error.
Failure restoreFlags(mlir::ModuleOp module, CompileRequest &request);

} // namespace gradc

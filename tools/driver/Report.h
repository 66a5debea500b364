// What gradc prints of a compile: its summary, a plan, timings.
#pragma once

#include "tools/driver/Compile.h"

namespace gradc {

/// Parameters, FLOPs, memory by kind and kernels of what was compiled.
void printSummary(const Compiler &compiler, const CompileRequest &request, llvm::raw_ostream &out);

/// The same for a plan; as one JSON object where `json`.
void printPlan(const Compiler &compiler, const CompileRequest &request, bool json,
               llvm::raw_ostream &out);

/// Seconds of each phase.
void printTimings(const Compiler &compiler, llvm::raw_ostream &out);

} // namespace gradc

// What gradc prints: the summary of a compile, a plan, timings, and an executable explained.
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

/// Metadata and exec program of an executable, read from its section .gradc.metadata.
Failure printExplanation(const std::string &executable, llvm::raw_ostream &out);

} // namespace gradc

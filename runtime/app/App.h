// The command line of a compiled executable: train, eval, bench, generate, info.
#pragma once

#include "runtime/Abi.h"

namespace gradc::rt {

/// Runs the command that the arguments name; returns the process's exit code (Status.h). Errors go
/// to standard error as one line that begins with `error: `.
int runExecutable(const GradcExecutable &executable, int argc, const char *const *argv);

} // namespace gradc::rt

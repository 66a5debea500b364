// Whether this processor has the instructions that an executable was compiled for: better one line
// than an illegal instruction in the middle of a step.
#pragma once

#include <string>
#include <vector>

#include "runtime/Status.h"

namespace gradc::rt {

/// A user status that names the features of `wanted` (LLVM's names) that this processor lacks.
/// Names that do not concern vector code are not checked.
Status checkCpuFeatures(const std::vector<std::string> &wanted);

} // namespace gradc::rt

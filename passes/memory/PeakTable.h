// The buffers that are alive when a program needs the most memory, for `gradc explain`.
#pragma once

#include "passes/memory/Storage.h"

#include <string>

namespace gradc {

/// A line for the peak and one for each of the largest buffers alive there: bytes, what writes it,
/// and from which to which command it lives.
llvm::SmallVector<std::string> peakTable(const ProgramStorage &program);

} // namespace gradc

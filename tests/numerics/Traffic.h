// What kernels say they access against what the emulator saw.
#pragma once

#include "ir/KernelLibrary.h"
#include "runtime/emulator/Emulator.h"

namespace gradc::test {

/// Compares a launch's statement with what it accessed: the same bytes read of each buffer and
/// written in all; but of cached buffers no fewer than stated (threads share what is stated once),
/// and where the statement is the most, no more.
void expectTraffic(const std::vector<rt::EmulatedTraffic> &seen, const KernelWork &stated);

} // namespace gradc::test

// Checks the order of streams from first principles. Shares no code with the pass that makes it, so
// that one mistake cannot be in both.
#pragma once

#include "ir/Exec.h"

#include <string>
#include <vector>

namespace gradc::streams {

/// What is wrong with the streams and events of a program; empty where it may be run. Checked, on
/// the program with two rounds of its repeat one after another: two commands that touch a common
/// byte, one of them writing, are ordered by streams and events as the program has them; every
/// event that is waited for was recorded; no stream begins before stream 0 has, and stream 0 ends
/// after all others. More rounds add nothing: what orders two neighbours orders all. Lists at most
/// `maxViolations`.
std::vector<std::string> validateStreams(exec::ProgramOp program, size_t maxViolations = 20);

} // namespace gradc::streams

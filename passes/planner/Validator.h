// Checks a memory plan from first principles. Shares no code with the planner, so that one mistake
// cannot be in both; it reads only the plain data of Buffer.h.
#pragma once

#include "passes/planner/Buffer.h"

namespace gradc::planner {

/// What is wrong with `plan` as a plan for `buffers`; empty where it may be run. Checked: one
/// offset for each buffer; offsets not negative and aligned; every buffer with its padding within
/// the peak; no two buffers live at one time share a byte; the highest buffer ends at the peak; the
/// lower bound is the most bytes live at one time. Neither argument need be sane. Lists at most
/// `maxViolations`. O(n log n) for a plan without violations.
std::vector<std::string> validate(const std::vector<Buffer> &buffers, const Plan &plan,
                                  size_t maxViolations = 20);

} // namespace gradc::planner

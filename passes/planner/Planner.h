// The static memory planner: places every buffer of a step in one arena before the step ever runs.
//
// Placing rectangles of fixed time and free height with the least total height is NP-hard, yet the
// lifespans of a training step nest (what forward makes last, backward uses first), and there
// simple first-fit reaches the bound of what is live at one time. So: the best of first-fit by
// several orders, and only where none comes within the tolerance of that bound, branch and bound.
#pragma once

#include "passes/planner/Buffer.h"

namespace gradc::planner {

struct PlannerOptions {
  /// A plan whose peak is within this many thousandths of the lower bound is good enough.
  int64_t tolerancePermille = 10;

  /// Steps branch and bound may take in all (one step looks at one section of the timeline or one
  /// buffer; two to three nanoseconds). The cap counts steps, not seconds, because the offsets are
  /// compiled into the executable: the same model must give the same plan, and so the same binary
  /// and the same printed peak, on a loaded laptop and on an idle server.
  int64_t maxSearchSteps = 40'000'000;
};

/// Plans `buffers`. Never fails on valid buffers; on invalid ones (negative size, lifespan that
/// ends before it begins, alignment that is no power of two, sizes that overflow in sum)
/// `Plan::error` says which and why. Deterministic; keeps no state; safe from several threads.
Plan plan(const std::vector<Buffer> &buffers, const PlannerOptions &options = {});

/// The largest sum of reserved sizes live at one time, in bytes: no plan can need less.
/// Expects valid buffers.
int64_t lowerBound(const std::vector<Buffer> &buffers);

} // namespace gradc::planner

// Branch and bound in MiniMalloc's manner: items are placed from the bottom up, and a branch is cut
// as soon as some section of the timeline can no longer hold what must still pass through it.
//
// The placed items form a skyline over the timeline. The search looks at one of its valleys, and
// there at the section beside one of the walls. In any packing whose items rest on something (every
// packing can be pushed down to such a one) just two things can happen to that section at that
// height: an item that begins at this wall and fits the valley rests there, or nothing does, and
// the space up to the next height at which something could rest is lost. Placing an item loses
// nothing; a section fails only by loss, and where packings are tight it fails at once. Sections
// through which nothing more must pass become walls without end, which splits the problem in time.
#pragma once

#include "passes/planner/Items.h"

namespace gradc::planner {

enum class SearchEnd {
  Found,      ///< a packing within the capacity
  Impossible, ///< there is none
  OutOfSteps, ///< not known
};

/// Which valley is decided first. Neither is better on all problems, and where one is lost in a bad
/// corner the other often is not, so callers try both.
enum class ValleyRule {
  Tightest,  ///< the one with the least space to lose: fails early
  Narrowest, ///< the one of the fewest sections: has the fewest choices
};

struct SearchResult {
  SearchEnd end = SearchEnd::OutOfSteps;
  Packing packing; ///< when found
  int64_t steps = 0;
};

/// Looks for a packing of `items` (on a timeline of `sections`) with a peak of at most `capacity`,
/// trying items that come earlier in `sequence` first, in at most about `maxSteps` steps.
SearchResult packWithin(const std::vector<Item> &items, int32_t sections, int64_t capacity,
                        const std::vector<int32_t> &sequence, ValleyRule rule, int64_t maxSteps);

} // namespace gradc::planner

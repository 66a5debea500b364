// Packs each component by first-fit, and by search where that is not good enough.
#include "passes/planner/Planner.h"

#include "passes/planner/BranchAndBound.h"
#include "passes/planner/FirstFit.h"
#include "passes/planner/Timeline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace gradc::planner {
namespace {

/// The best packing of a component so far.
struct Best {
  Packing packing;
  std::string strategy;
  int64_t atLeast = 0; ///< no packing has a lower peak
};

/// The first is enough for training steps; each of the others wins on some problems.
constexpr std::pair<Order, Fit> heuristics[] = {{Order::Size, Fit::First},
                                                {Order::Area, Fit::First},
                                                {Order::Length, Fit::First},
                                                {Order::Size, Fit::Best},
                                                {Order::Start, Fit::Best}};

/// Tries the heuristics until one's peak is at most `target`.
Best packByFirstFit(const Component &component, int64_t target) {
  Best best;
  best.packing.peak = std::numeric_limits<int64_t>::max();
  for (auto [order, fit] : heuristics) {
    Packing packing =
        firstFit(component.items, sorted(component.items, order), fit, best.packing.peak);
    if (packing.peak < best.packing.peak) {
      best.packing = std::move(packing);
      best.strategy = std::string(name(fit)) + " by " + name(order);
    }
    if (best.packing.peak <= target)
      break;
  }
  return best;
}

constexpr std::array searchOrders = {Order::Area, Order::Size, Order::Length};
constexpr std::array searchRules = {ValleyRule::Tightest, ValleyRule::Narrowest};
constexpr int64_t waysToSearch = searchOrders.size() * searchRules.size();

/// Searches for a packing within `capacity`, with a slice of the steps for each way to search.
SearchResult search(const Component &component, int64_t capacity, int64_t maxSteps) {
  SearchResult result;
  int64_t steps = 0;
  for (Order order : searchOrders) {
    std::vector<int32_t> sequence = sorted(component.items, order);
    for (ValleyRule rule : searchRules) {
      result = packWithin(component.items, component.sections, capacity, sequence, rule,
                          maxSteps / waysToSearch);
      steps += result.steps;
      result.steps = steps;
      if (result.end != SearchEnd::OutOfSteps)
        return result;
    }
  }
  return result;
}

/// Halves the distance between what was found and what is wanted until the steps are spent.
void improve(const Component &component, int64_t target, int64_t &stepsLeft, Best &best) {
  // Every offset and size is a multiple of the smallest alignment, hence every peak too.
  int64_t unit = component.items.front().alignment;
  for (const Item &item : component.items)
    unit = std::min(unit, item.alignment);
  int64_t capacity = std::max(target, best.atLeast) & -unit;
  int64_t unlikely = capacity - unit; // nothing was found at this capacity, or was not tried
  // A search that cannot even reach its first leaf is not worth its steps.
  int64_t leastSteps = static_cast<int64_t>(component.items.size()) * component.sections;
  while (best.packing.peak > target && capacity < best.packing.peak) {
    int64_t slice = stepsLeft / 4;
    if (slice / waysToSearch < leastSteps)
      return;
    SearchResult result = search(component, capacity, slice);
    stepsLeft -= result.steps;
    if (result.end == SearchEnd::Found) {
      best.packing = std::move(result.packing);
      best.strategy = "branch and bound";
    } else {
      unlikely = capacity;
      if (result.end == SearchEnd::Impossible)
        best.atLeast = std::max(best.atLeast, capacity + unit);
    }
    int64_t distance = (best.packing.peak - unlikely) / unit;
    capacity = unlikely + std::max<int64_t>(distance / 2, 1) * unit;
  }
}

} // namespace

Plan plan(const std::vector<Buffer> &buffers, const PlannerOptions &options) {
  Plan plan;
  plan.error = findError(buffers);
  if (!plan.error.empty())
    return plan;
  plan.offsets.assign(buffers.size(), 0);
  plan.optimal = true;

  std::vector<Component> components = makeComponents(buffers);
  for (const Component &component : components)
    plan.lowerBound = std::max(plan.lowerBound, largestSection(component));
  // In two parts, so that the product stays within 64 bits.
  int64_t target = plan.lowerBound + plan.lowerBound / 1000 * options.tolerancePermille +
                   plan.lowerBound % 1000 * options.tolerancePermille / 1000;

  int64_t stepsLeft = options.maxSearchSteps, atLeast = plan.lowerBound;
  for (const Component &component : components) {
    Best best = packByFirstFit(component, target);
    best.atLeast = largestSection(component);
    improve(component, target, stepsLeft, best);
    for (size_t i = 0; i < component.items.size(); ++i)
      plan.offsets[component.buffers[i]] = best.packing.offsets[i];
    atLeast = std::max(atLeast, best.atLeast);
    if (best.packing.peak > plan.peak) {
      plan.peak = best.packing.peak;
      plan.strategy = best.strategy;
    }
  }
  plan.searchSteps = options.maxSearchSteps - stepsLeft;
  plan.optimal = plan.peak == atLeast;
  return plan;
}

int64_t lowerBound(const std::vector<Buffer> &buffers) {
  int64_t bound = 0;
  for (const Component &component : makeComponents(buffers))
    bound = std::max(bound, largestSection(component));
  return bound;
}

} // namespace gradc::planner

// First-fit: places items one after the other, each in a gap between those placed before it that
// are live at the same time. All the skill is in the order.
#pragma once

#include "passes/planner/Items.h"

namespace gradc::planner {

/// What an item is sorted by, largest first (`Start`: earliest first).
enum class Order { Size, Length, Area, Start };
const char *name(Order order);

/// Which gap is taken: the lowest that is large enough, or the one that leaves least over.
enum class Fit { First, Best };
const char *name(Fit fit);

/// The items' indices sorted by `order`; ties go by the other measures, then by index.
std::vector<int32_t> sorted(const std::vector<Item> &items, Order order);

/// Places all `items` in the sequence given; or gives up as soon as the peak is known to reach
/// `giveUpAt` or more, and then returns that peak and offsets that mean nothing.
Packing firstFit(const std::vector<Item> &items, const std::vector<int32_t> &sequence, Fit fit,
                 int64_t giveUpAt);

} // namespace gradc::planner

// First-fit over a list of the placed items that is kept sorted by offset.
#include "passes/planner/FirstFit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace gradc::planner {

const char *name(Order order) {
  switch (order) {
  case Order::Size:
    return "size";
  case Order::Length:
    return "lifespan";
  case Order::Area:
    return "area";
  case Order::Start:
    return "start";
  }
  return "";
}

const char *name(Fit fit) { return fit == Fit::First ? "first-fit" : "best-fit"; }

std::vector<int32_t> sorted(const std::vector<Item> &items, Order order) {
  auto key = [&](int32_t index) {
    const Item &item = items[index];
    int64_t size = -item.size, length = -item.length(), start = item.first;
    // As a double: bytes times sections may pass 64 bits, and equal inputs still compare equal.
    double area = -static_cast<double>(item.size) * static_cast<double>(item.length());
    double primary = order == Order::Area     ? area
                     : order == Order::Length ? static_cast<double>(length)
                     : order == Order::Start  ? static_cast<double>(start)
                                              : static_cast<double>(size);
    return std::make_tuple(primary, size, length, start, index);
  };
  std::vector<int32_t> sequence(items.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  std::sort(sequence.begin(), sequence.end(),
            [&](int32_t a, int32_t b) { return key(a) < key(b); });
  return sequence;
}

namespace {
struct Placed {
  int64_t offset, end;
  int32_t first, last;
};

/// The offset for `item` among `placed` (sorted by offset).
int64_t findOffset(const std::vector<Placed> &placed, const Item &item, Fit fit) {
  int64_t top = 0; // the end of everything live together with the item, so far
  int64_t best = -1, bestLeft = std::numeric_limits<int64_t>::max();
  for (const Placed &other : placed) {
    // No short circuit: the outcome of each half is a coin toss, and this is the inner loop.
    bool together = (other.first < item.last) & (item.first < other.last);
    if (!together)
      continue;
    int64_t offset = alignUp(top, item.alignment);
    int64_t left = other.offset - offset - item.size;
    if (left >= 0 && left < bestLeft) {
      if (fit == Fit::First)
        return offset;
      best = offset;
      bestLeft = left;
    }
    top = std::max(top, other.end);
  }
  return best >= 0 ? best : alignUp(top, item.alignment);
}
} // namespace

Packing firstFit(const std::vector<Item> &items, const std::vector<int32_t> &sequence, Fit fit,
                 int64_t giveUpAt) {
  Packing packing;
  packing.offsets.resize(items.size());
  std::vector<Placed> placed;
  placed.reserve(items.size());
  for (int32_t index : sequence) {
    const Item &item = items[index];
    int64_t offset = findOffset(placed, item, fit);
    packing.offsets[index] = offset;
    packing.peak = std::max(packing.peak, offset + item.size);
    if (packing.peak >= giveUpAt)
      break;
    auto above = std::upper_bound(placed.begin(), placed.end(), offset,
                                  [](int64_t o, const Placed &p) { return o < p.offset; });
    placed.insert(above, {offset, offset + item.size, item.first, item.last});
  }
  return packing;
}

} // namespace gradc::planner

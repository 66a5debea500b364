// The search of BranchAndBound.h, depth first over an explicit stack.
#include "passes/planner/BranchAndBound.h"

#include <algorithm>
#include <limits>

namespace gradc::planner {
namespace {

constexpr int64_t noLimit = std::numeric_limits<int64_t>::max();

/// A maximal run of sections at one height, `floor`, between higher ones.
struct Valley {
  int32_t begin = 0, end = 0;
  int64_t floor = noLimit, leftWall = noLimit, rightWall = noLimit;
};

/// A decision about `section`, beside one wall of a valley: which of the items
/// choices[firstChoice, lastChoice) rests there, or, after those, that none does.
struct Frame {
  Valley valley;
  int32_t section;
  size_t poolSize; ///< of `choices` before this decision
  size_t firstChoice, lastChoice, next;
  bool lost = false; ///< the last choice was made: nothing rests on the floor at this section
};

class Search {
public:
  Search(const std::vector<Item> &items, int32_t sections, int64_t capacity,
         const std::vector<int32_t> &sequence, ValleyRule rule, int64_t maxSteps)
      : items(items), capacity(capacity), rule(rule), maxSteps(maxSteps), unplaced(items.size()),
        skyline(sections, 0), needed(sections, 0), pending(sections, 0), isPlaced(items.size(), 0),
        beginsAt(sections), endsAt(sections) {
    result.packing.offsets.resize(items.size());
    for (int32_t index : sequence) {
      const Item &item = items[index];
      beginsAt[item.first].push_back(index);
      endsAt[item.last - 1].push_back(index);
      for (int32_t s = item.first; s < item.last; ++s) {
        ++pending[s];
        needed[s] += item.size;
      }
    }
    for (int32_t s = 0; s < sections; ++s)
      if (pending[s] == 0)
        skyline[s] = noLimit;
  }

  SearchResult run() {
    bool possible = std::all_of(needed.begin(), needed.end(),
                                [this](int64_t bytes) { return bytes <= capacity; });
    if (possible && unplaced > 0)
      decide();
    while (!stack.empty() && unplaced > 0 && result.steps < maxSteps)
      advance();
    if (possible && unplaced == 0) {
      result.end = SearchEnd::Found;
      for (size_t i = 0; i < items.size(); ++i)
        result.packing.peak =
            std::max(result.packing.peak, result.packing.offsets[i] + items[i].size);
    } else if (stack.empty()) {
      result.end = SearchEnd::Impossible;
    }
    return std::move(result);
  }

private:
  /// Undoes the top decision's current choice and makes its next one; drops it after the last.
  void advance() {
    Frame &frame = stack.back();
    if (frame.lost) {
      skyline[frame.section] = frame.valley.floor;
      choices.resize(frame.poolSize);
      stack.pop_back();
      return;
    }
    if (frame.next > frame.firstChoice)
      remove(choices[frame.next - 1], frame.valley.floor);
    if (frame.next < frame.lastChoice) {
      place(choices[frame.next++], frame.valley.floor);
      if (unplaced > 0)
        decide();
      return;
    }
    int64_t height = heightAfterLoss(frame);
    // Without a limit, every choice was an item that had to come next, and none led anywhere.
    if (height == noLimit || height + needed[frame.section] > capacity) {
      choices.resize(frame.poolSize);
      stack.pop_back();
      return;
    }
    frame.lost = true;
    skyline[frame.section] = height;
    decide();
  }

  void place(int32_t index, int64_t offset) {
    const Item &item = items[index];
    result.packing.offsets[index] = offset;
    isPlaced[index] = true;
    --unplaced;
    for (int32_t s = item.first; s < item.last; ++s) {
      needed[s] -= item.size;
      skyline[s] = --pending[s] == 0 ? noLimit : offset + item.size;
    }
    result.steps += item.length();
  }

  void remove(int32_t index, int64_t floor) {
    const Item &item = items[index];
    isPlaced[index] = false;
    ++unplaced;
    for (int32_t s = item.first; s < item.last; ++s) {
      needed[s] += item.size;
      ++pending[s];
      skyline[s] = floor;
    }
    result.steps += item.length();
  }

  /// Pushes a decision about a valley: about its section beside the left or the right wall,
  /// whichever has fewer choices, or less to lose.
  void decide() {
    Valley valley = chooseValley();
    size_t poolSize = choices.size();
    addChoices(beginsAt[valley.begin], valley);
    size_t middle = choices.size();
    addChoices(endsAt[valley.end - 1], valley);
    size_t leftCount = middle - poolSize, rightCount = choices.size() - middle;
    bool isLeft = leftCount != rightCount ? leftCount < rightCount
                                          : needed[valley.begin] >= needed[valley.end - 1];
    if (isLeft)
      stack.push_back({valley, valley.begin, poolSize, poolSize, middle, poolSize});
    else
      stack.push_back({valley, valley.end - 1, poolSize, middle, choices.size(), middle});
  }

  /// The valley that `rule` ranks first, of equals the first in time.
  Valley chooseValley() {
    auto sections = static_cast<int32_t>(skyline.size());
    result.steps += sections;
    Valley best;
    int64_t bestRank = noLimit, leftWall = noLimit;
    for (int32_t begin = 0, end = 0; begin < sections; begin = end) {
      int64_t floor = skyline[begin], most = 0;
      for (; end < sections && skyline[end] == floor; ++end)
        most = std::max(most, needed[end]);
      int64_t rightWall = end < sections ? skyline[end] : noLimit;
      bool isValley = floor != noLimit && floor < leftWall && floor < rightWall;
      int64_t rank = rule == ValleyRule::Tightest ? capacity - floor - most : end - begin;
      if (isValley && rank < bestRank) {
        best = {begin, end, floor, leftWall, rightWall};
        bestRank = rank;
      }
      leftWall = floor;
    }
    return best;
  }

  bool isInside(const Item &item, const Valley &valley) const {
    return item.first >= valley.begin && item.last <= valley.end;
  }

  /// Adds those of `candidates` that can rest on the valley's floor, one of each kind.
  void addChoices(const std::vector<int32_t> &candidates, const Valley &valley) {
    size_t begin = choices.size();
    for (int32_t index : candidates) {
      const Item &item = items[index];
      if (isPlaced[index] || !isInside(item, valley) ||
          alignUp(valley.floor, item.alignment) != valley.floor)
        continue;
      bool isTwin = std::any_of(choices.begin() + begin, choices.end(), [&](int32_t other) {
        const Item &twin = items[other];
        return twin.first == item.first && twin.last == item.last && twin.size == item.size &&
               twin.alignment == item.alignment;
      });
      if (!isTwin)
        choices.push_back(index);
    }
    result.steps += static_cast<int64_t>(candidates.size());
  }

  /// The lowest height above the floor at which something could rest at the frame's section, given
  /// that nothing rests on the floor there: at a wall, on a misaligned floor's next aligned height,
  /// or on an item that is still to be placed beside the section.
  int64_t heightAfterLoss(const Frame &frame) {
    const Valley &valley = frame.valley;
    bool atLeft = frame.section == valley.begin;
    bool atRight = frame.section == valley.end - 1;
    // The far end of what the items that cover the section and fit the valley reach over.
    int32_t reachFirst = frame.section, reachLast = frame.section + 1;
    int64_t height = std::min(valley.leftWall, valley.rightWall);
    for (int32_t index : atLeft ? beginsAt[frame.section] : endsAt[frame.section]) {
      const Item &item = items[index];
      if (isPlaced[index] || !isInside(item, valley))
        continue;
      reachFirst = std::min(reachFirst, item.first);
      reachLast = std::max(reachLast, item.last);
      int64_t aligned = alignUp(valley.floor, item.alignment);
      if (aligned != valley.floor)
        height = std::min(height, aligned);
    }
    if (atLeft && atRight)
      return height;
    result.steps += valley.end - valley.begin;
    for (int32_t s = valley.begin; s < valley.end; ++s)
      for (int32_t index : beginsAt[s]) {
        const Item &item = items[index];
        bool covers = item.first <= frame.section && frame.section < item.last;
        bool supports = item.first < reachLast && reachFirst < item.last;
        if (!isPlaced[index] && isInside(item, valley) && !covers && supports)
          height = std::min(height, alignUp(valley.floor, item.alignment) + item.size);
      }
    return height;
  }

  const std::vector<Item> &items;
  const int64_t capacity;
  const ValleyRule rule;
  const int64_t maxSteps;
  size_t unplaced;
  std::vector<int64_t> skyline; ///< by section: the height reached; no limit where all are placed
  std::vector<int64_t> needed;  ///< by section: bytes of the items still to be placed
  std::vector<int32_t> pending; ///< by section: the number of those
  std::vector<char> isPlaced;
  std::vector<std::vector<int32_t>> beginsAt, endsAt; ///< items by their outermost sections
  std::vector<Frame> stack;
  std::vector<int32_t> choices; ///< of all frames, one after the other
  SearchResult result;
};

} // namespace

SearchResult packWithin(const std::vector<Item> &items, int32_t sections, int64_t capacity,
                        const std::vector<int32_t> &sequence, ValleyRule rule, int64_t maxSteps) {
  return Search(items, sections, capacity, sequence, rule, maxSteps).run();
}

} // namespace gradc::planner

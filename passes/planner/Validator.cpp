// A sweep over the commands that keeps the live buffers ordered by address.
#include "passes/planner/Validator.h"

#include <algorithm>
#include <map>

namespace gradc::planner {
namespace {

/// A birth or a death.
struct Event {
  int64_t time;
  bool isBirth;
  size_t buffer;
};

class Validation {
public:
  Validation(const std::vector<Buffer> &buffers, const Plan &plan, size_t maxViolations)
      : buffers(buffers), plan(plan), maxViolations(maxViolations) {}

  std::vector<std::string> run() {
    if (!plan.error.empty())
      report("the plan is an error: " + plan.error);
    if (plan.offsets.size() != buffers.size())
      report("the plan has " + std::to_string(plan.offsets.size()) + " offsets for " +
             std::to_string(buffers.size()) + " buffers");
    if (plan.peak < 0)
      report("the peak " + std::to_string(plan.peak) + " is negative");
    if (violations.empty())
      for (size_t i = 0; i < buffers.size(); ++i)
        checkBuffer(i);
    // The sweep does arithmetic on ends, which is safe only once every buffer is sound by itself.
    if (violations.empty()) {
      checkPeak();
      sweep();
    }
    return std::move(violations);
  }

private:
  void report(std::string text) {
    if (violations.size() < maxViolations)
      violations.push_back(std::move(text));
  }

  static bool isLive(const Buffer &buffer) {
    return buffer.size > 0 && buffer.upper > buffer.lower;
  }

  /// Bytes from the buffer's end to the next multiple of its alignment.
  static int64_t paddingBytes(const Buffer &buffer) {
    int64_t tail = buffer.size % buffer.alignment;
    return tail == 0 ? 0 : buffer.alignment - tail;
  }
  static int64_t paddedBytes(const Buffer &buffer) { return buffer.size + paddingBytes(buffer); }

  std::string describe(size_t i) const {
    const Buffer &b = buffers[i];
    std::string text = "buffer " + std::to_string(i) + " (" + std::to_string(b.size) +
                       " bytes, commands [" + std::to_string(b.lower) + ", " +
                       std::to_string(b.upper) + ")";
    if (i < plan.offsets.size())
      text += " at " + std::to_string(plan.offsets[i]);
    return text + ")";
  }

  void checkBuffer(size_t i) {
    const Buffer &buffer = buffers[i];
    int64_t offset = plan.offsets[i];
    bool isPowerOfTwo = false;
    for (int bit = 0; bit < 63; ++bit)
      isPowerOfTwo |= buffer.alignment == int64_t{1} << bit;
    if (!isPowerOfTwo)
      return report(describe(i) + ": alignment " + std::to_string(buffer.alignment) +
                    " is not a power of two");
    if (buffer.size < 0)
      return report(describe(i) + ": negative size");
    if (buffer.upper < buffer.lower)
      return report(describe(i) + ": lifespan ends before it begins");
    if (offset < 0)
      return report(describe(i) + ": negative offset");
    if (offset % buffer.alignment != 0)
      report(describe(i) + ": offset is not a multiple of its alignment " +
             std::to_string(buffer.alignment));
    // In this order nothing can overflow: what is subtracted is never more than what there is.
    bool fits = offset <= plan.peak;
    if (isLive(buffer) && fits)
      fits = buffer.size <= plan.peak - offset &&
             paddingBytes(buffer) <= plan.peak - offset - buffer.size;
    if (!fits)
      report(describe(i) + ": ends above the peak " + std::to_string(plan.peak));
  }

  void checkPeak() {
    int64_t highest = 0;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (isLive(buffers[i]))
        highest = std::max(highest, plan.offsets[i] + paddedBytes(buffers[i]));
    if (highest != plan.peak)
      report("the peak is " + std::to_string(plan.peak) + ", but the highest buffer ends at " +
             std::to_string(highest));
  }

  /// Walks through all births and deaths. At any time the live buffers lie in order in `live`, so
  /// a new one can only collide with the one before and those that begin within it.
  void sweep() {
    std::vector<Event> events;
    for (size_t i = 0; i < buffers.size(); ++i)
      if (isLive(buffers[i])) {
        events.push_back({buffers[i].lower, true, i});
        events.push_back({buffers[i].upper, false, i});
      }
    // Deaths before births: a lifespan does not include its upper end.
    std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
      if (a.time != b.time)
        return a.time < b.time;
      return a.isBirth != b.isBirth ? b.isBirth : a.buffer < b.buffer;
    });
    for (const Event &event : events) {
      int64_t bytes = paddedBytes(buffers[event.buffer]);
      if (event.isBirth)
        insert(event.buffer, bytes);
      else
        erase(event.buffer);
      if (violations.size() >= maxViolations)
        return;
      // Without overlaps the live bytes are at most the peak; with them the sum could overflow.
      if (violations.empty())
        liveBytes += event.isBirth ? bytes : -bytes;
      mostLiveBytes = std::max(mostLiveBytes, liveBytes);
    }
    if (violations.empty() && plan.lowerBound != mostLiveBytes)
      report("the lower bound is " + std::to_string(plan.lowerBound) +
             ", but the most bytes live at one time are " + std::to_string(mostLiveBytes));
  }

  void insert(size_t buffer, int64_t bytes) {
    int64_t offset = plan.offsets[buffer];
    auto next = live.lower_bound(offset);
    if (next != live.begin()) {
      size_t below = std::prev(next)->second;
      if (plan.offsets[below] + paddedBytes(buffers[below]) > offset)
        reportOverlap(below, buffer);
    }
    for (; next != live.end() && next->first < offset + bytes; ++next)
      reportOverlap(next->second, buffer);
    live.emplace(offset, buffer);
  }

  void erase(size_t buffer) {
    auto [it, end] = live.equal_range(plan.offsets[buffer]);
    while (it != end && it->second != buffer)
      ++it;
    if (it != end)
      live.erase(it);
  }

  void reportOverlap(size_t a, size_t b) {
    report(describe(a) + " and " + describe(b) + " are live at the same time and overlap");
  }

  const std::vector<Buffer> &buffers;
  const Plan &plan;
  const size_t maxViolations;
  std::vector<std::string> violations;
  std::multimap<int64_t, size_t> live; ///< offset to buffer
  int64_t liveBytes = 0, mostLiveBytes = 0;
};

} // namespace

std::vector<std::string> validate(const std::vector<Buffer> &buffers, const Plan &plan,
                                  size_t maxViolations) {
  return Validation(buffers, plan, maxViolations).run();
}

} // namespace gradc::planner

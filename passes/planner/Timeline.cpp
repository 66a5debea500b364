// Checks of buffers, and the sweep that cuts the timeline.
#include "passes/planner/Timeline.h"

#include <algorithm>
#include <numeric>

namespace gradc::planner {

std::string findError(const std::vector<Buffer> &buffers) {
  int64_t total = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    std::string where = "buffer " + std::to_string(i) + ": ";
    if (buffer.size < 0)
      return where + "size " + std::to_string(buffer.size) + " is negative";
    if (buffer.upper < buffer.lower)
      return where + "lifespan [" + std::to_string(buffer.lower) + ", " +
             std::to_string(buffer.upper) + ") ends before it begins";
    if (buffer.alignment <= 0 || (buffer.alignment & (buffer.alignment - 1)) != 0)
      return where + "alignment " + std::to_string(buffer.alignment) + " is not a power of two";
    // Twice the alignment: offsets between items are rounded up too.
    int64_t padded = 0;
    if (__builtin_add_overflow(buffer.size, buffer.alignment, &padded) ||
        __builtin_add_overflow(padded, buffer.alignment, &padded) ||
        __builtin_add_overflow(total, padded, &total))
      return where + "size " + std::to_string(buffer.size) +
             " makes the sum of all sizes larger than 64 bits can hold";
  }
  return "";
}

namespace {
/// Buffers by their place on the timeline: [first, last) sections.
struct Span {
  size_t buffer;
  int32_t first = 0, last = 0;
};

/// A new section begins only where a life begins after one has ended: between two such points the
/// set of live buffers first grows and then shrinks, and its largest state stands for all.
std::vector<Span> cutTimeline(const std::vector<Buffer> &buffers) {
  std::vector<Span> spans;
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].size > 0 && buffers[i].lower < buffers[i].upper)
      spans.push_back({i});
  std::sort(spans.begin(), spans.end(), [&](const Span &a, const Span &b) {
    int64_t lowerA = buffers[a.buffer].lower, lowerB = buffers[b.buffer].lower;
    return lowerA != lowerB ? lowerA < lowerB : a.buffer < b.buffer;
  });
  std::vector<size_t> byEnd(spans.size());
  std::iota(byEnd.begin(), byEnd.end(), 0);
  std::sort(byEnd.begin(), byEnd.end(), [&](size_t a, size_t b) {
    return buffers[spans[a].buffer].upper < buffers[spans[b].buffer].upper;
  });

  int32_t section = 0;
  size_t ended = 0;
  for (Span &span : spans) {
    bool hasEnded = false;
    for (; ended < byEnd.size() &&
           buffers[spans[byEnd[ended]].buffer].upper <= buffers[span.buffer].lower;
         ++ended) {
      spans[byEnd[ended]].last = section + 1;
      hasEnded = true;
    }
    section += hasEnded;
    span.first = section;
  }
  for (; ended < byEnd.size(); ++ended)
    spans[byEnd[ended]].last = section + 1;
  return spans;
}
} // namespace

std::vector<Component> makeComponents(const std::vector<Buffer> &buffers) {
  std::vector<Component> components;
  int32_t begin = 0, end = 0; // of the last component
  for (const Span &span : cutTimeline(buffers)) {
    if (components.empty() || span.first >= end) {
      components.emplace_back();
      begin = end = span.first;
    }
    const Buffer &buffer = buffers[span.buffer];
    Component &component = components.back();
    component.items.push_back({alignUp(buffer.size, buffer.alignment), buffer.alignment,
                               span.first - begin, span.last - begin});
    component.buffers.push_back(span.buffer);
    end = std::max(end, span.last);
    component.sections = end - begin;
  }
  return components;
}

int64_t largestSection(const Component &component) {
  std::vector<int64_t> change(component.sections + 1, 0);
  for (const Item &item : component.items) {
    change[item.first] += item.size;
    change[item.last] -= item.size;
  }
  int64_t live = 0, largest = 0;
  for (int64_t bytes : change) {
    live += bytes;
    largest = std::max(largest, live);
  }
  return largest;
}

} // namespace gradc::planner

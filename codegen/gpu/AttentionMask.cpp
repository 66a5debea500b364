// See AttentionMask.h.
#include "codegen/gpu/AttentionMask.h"

#include <limits>

using namespace mlir;

namespace gradc::codegen::gpu {

void AttentionMask::openSequence(Val batch) {
  constexpr int64_t bytes = 4;
  if (spec.documents)
    firstKeys = e.at(firstKeys, e.widen(batch) * (spec.seq * bytes));
}

Val AttentionMask::firstKey(Val query) const {
  Val inside = e.minimum(query, e.number(spec.seq - 1));
  Val key = e.load(e.i32(), e.at(firstKeys, e.widen(inside * 4)), 4);
  return e.minimum(e.maximum(key, e.number(0)), e.number(spec.seq));
}

Val AttentionMask::lastKey(Val query) const {
  Val last = e.number(spec.seq - 1);
  return spec.masked() ? e.minimum(query, last) : last;
}

Val AttentionMask::firstSeen(Val query) const {
  Val first = e.number(0);
  if (spec.window > 0)
    first = e.maximum(query - (spec.window - 1), first);
  return spec.documents ? e.maximum(firstKey(query), first) : first;
}

AttentionMask::Range AttentionMask::keysOf(Val query, int64_t count) {
  Val low = e.number(0), high = e.number(spec.seq);
  if (spec.masked())
    high = e.minimum(high, query + count);
  if (spec.window > 0)
    low = e.maximum(low, query - (spec.window - 1));
  if (spec.documents) {
    Val least = e.number(spec.seq), greatest = e.number(0);
    for (int64_t done = 0; done < count; done += warpThreads) {
      Val key = firstKey(query + place.lane + done);
      least = e.minimum(least, key);
      greatest = e.maximum(greatest, key);
    }
    low = e.maximum(low, e.warpMinimum(least));
    latestFirst = e.warpMaximum(greatest);
  }
  return {low, high};
}

AttentionMask::Range AttentionMask::queriesOf(Val key, int64_t count) const {
  Val low = spec.masked() ? key : e.number(0), high = e.number(spec.seq);
  if (spec.window > 0)
    high = e.minimum(high, key + (count + spec.window - 1));
  if (spec.documents) {
    // Behind the last query whose document starts before the keys' end.
    Val end = key + count, last = low, from = low;
    Val steps = (high - low + (warpThreads - 1)) / warpThreads;
    e.loop(e.number(0), steps, {&last}, [&](Val step) {
      Val query = from + step * warpThreads + place.lane;
      Val sees = e.less(firstKey(query), end) & e.less(query, high);
      last = e.select(sees, query + 1, last);
    });
    high = e.warpMaximum(last);
  }
  return {low, high};
}

static void hide(Emit &e, FragmentC &scores, function_ref<Val(int h, int p)> isSeen) {
  Val hidden = e.real(-std::numeric_limits<float>::infinity());
  scores.map([&](Val x, int h, int p) { return e.select(isSeen(h, p), x, hidden); });
}

void AttentionMask::maskKeys(Bands &scores, Val row, Val column) const {
  auto rows = static_cast<int64_t>(scores.size()) * bandRows;
  auto columns = static_cast<int64_t>(scores[0].size()) * fragmentColumns;
  Val end = column + columns, needed = e.less(e.number(spec.seq), end);
  if (spec.masked())
    needed = needed | e.less(row, end - 1);
  if (spec.window > 0)
    needed = needed | e.less(column, row + (rows - spec.window));
  if (spec.documents)
    needed = needed | e.less(column, latestFirst);
  e.when(needed, variablesOf(scores), [&] {
    Val mine = column + place.member * 2;
    for (size_t band = 0; band < scores.size(); ++band) {
      std::array<Val, 2> first, last;
      for (int64_t h = 0; h < 2; ++h) {
        Val query = row + place.quad + (static_cast<int64_t>(band) * bandRows + 8 * h);
        first[h] = firstSeen(query);
        last[h] = lastKey(query);
      }
      for (size_t n = 0; n < scores[band].size(); ++n)
        hide(e, scores[band][n], [&](int h, int p) {
          Val key = mine + (static_cast<int64_t>(n) * fragmentColumns + p);
          Val isSeen = e.less(key, last[h] + 1);
          return spec.forgets() ? isSeen & e.less(first[h] - 1, key) : isSeen;
        });
    }
  });
}

void AttentionMask::maskQueries(Bands &scores, Val row, Val column, Val columnFirstKeys) const {
  auto rows = static_cast<int64_t>(scores.size()) * bandRows;
  auto columns = static_cast<int64_t>(scores[0].size()) * fragmentColumns;
  if (!spec.masked() && !spec.documents)
    return;
  Val needed = e.truth(spec.documents);
  if (spec.masked())
    needed = needed | e.less(column, row + (rows - 1));
  if (spec.window > 0)
    needed = needed | e.less(row + (spec.window - 1), column + (columns - 1));
  e.when(needed, variablesOf(scores), [&] {
    Val mine = column + place.member * 2;
    for (size_t n = 0; n < scores[0].size(); ++n) {
      int64_t at = static_cast<int64_t>(n) * fragmentColumns;
      Val firsts;
      if (spec.documents)
        firsts = e.loadVector(2, e.i32(), e.at(columnFirstKeys, place.member * 8 + at * 4));
      for (size_t band = 0; band < scores.size(); ++band)
        hide(e, scores[band][n], [&](int h, int p) {
          Val key = row + place.quad + (static_cast<int64_t>(band) * bandRows + 8 * h);
          Val query = mine + (at + p);
          Val isSeen = e.truth(true);
          if (spec.masked())
            isSeen = isSeen & e.less(key, query + 1);
          if (spec.window > 0)
            isSeen = isSeen & e.less(query, key + spec.window);
          if (spec.documents)
            isSeen = isSeen & e.less(e.element(firsts, p), key + 1);
          return isSeen;
        });
    }
  });
}

} // namespace gradc::codegen::gpu

// Warp-wide operations on registers: shuffles, votes, matches, reductions.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace gradc::rt::emulator {
namespace {

template <typename Body> void forLanes(const GradcLanes &lanes, Body body) {
  for (uint32_t left = lanes.mask; left; left &= left - 1)
    body(std::countr_zero(left));
}

/// `source(lane, distance)` is the lane read, `isInRange(source, bound)` whether it is in the
/// segment; a lane out of range keeps its own value.
template <typename Source, typename IsInRange>
void shuffle(const GradcLanes &lanes, Source source, IsInRange isInRange) {
  forLanes(lanes, [&](int lane) {
    const uint32_t *operands = lanes.operands[lane];
    int distance = int(operands[2] & 31), segment = int(operands[3] >> 8 & 31),
        clamp = int(operands[3] & 31);
    int least = lane & segment, most = least | (clamp & ~segment);
    int from = source(lane, distance, least, segment);
    bool inRange = isInRange(from, most);
    if (!inRange)
      from = lane;
    if (!(lanes.mask >> from & 1))
      machine->fail([&] {
        return fmt::format(
            "divergent: lane {} reads a register of lane {}, which is not in the mask "
            "{:#010x}: {}",
            lane, from, lanes.mask, machine->current().waiting->text);
      });
    lanes.results[lane][0] = lanes.operands[from][1];
    lanes.results[lane][1] = inRange;
  });
}

constexpr auto upToMost = [](int from, int most) { return from <= most; };

/// The lanes whose predicate holds.
uint32_t ballot(const GradcLanes &lanes) {
  uint32_t set = 0;
  forLanes(lanes, [&](int lane) { set |= uint32_t(lanes.operands[lane][1] & 1) << lane; });
  return set;
}

void giveAll(const GradcLanes &lanes, uint32_t value) {
  forLanes(lanes, [&](int lane) { lanes.results[lane][0] = value; });
}

template <typename Number, typename Combine> void reduce(const GradcLanes &lanes, Combine combine) {
  auto valueOf = [&](int lane) { return Number(lanes.operands[lane][0]); };
  int first = std::countr_zero(lanes.mask);
  Number result = valueOf(first);
  forLanes(lanes, [&](int lane) {
    if (lane != first)
      result = combine(result, valueOf(lane));
  });
  giveAll(lanes, uint32_t(result));
}

} // namespace

extern "C" {

void gradc_emulated_shuffle_up(const GradcLanes *lanes) {
  shuffle(
      *lanes, [](int lane, int distance, int, int) { return lane - distance; },
      [](int from, int most) { return from >= most; });
}
void gradc_emulated_shuffle_down(const GradcLanes *lanes) {
  shuffle(*lanes, [](int lane, int distance, int, int) { return lane + distance; }, upToMost);
}
void gradc_emulated_shuffle_butterfly(const GradcLanes *lanes) {
  shuffle(*lanes, [](int lane, int distance, int, int) { return lane ^ distance; }, upToMost);
}
void gradc_emulated_shuffle_index(const GradcLanes *lanes) {
  shuffle(
      *lanes,
      [](int, int index, int least, int segment) { return least | (index & ~segment & 31); },
      upToMost);
}

void gradc_emulated_vote_all(const GradcLanes *lanes) {
  giveAll(*lanes, ballot(*lanes) == lanes->mask);
}
void gradc_emulated_vote_any(const GradcLanes *lanes) { giveAll(*lanes, ballot(*lanes) != 0); }
void gradc_emulated_vote_uniform(const GradcLanes *lanes) {
  uint32_t set = ballot(*lanes);
  giveAll(*lanes, set == 0 || set == lanes->mask);
}
void gradc_emulated_vote_ballot(const GradcLanes *lanes) { giveAll(*lanes, ballot(*lanes)); }

void gradc_emulated_match_any(const GradcLanes *lanes) {
  forLanes(*lanes, [&](int lane) {
    uint32_t equal = 0;
    forLanes(*lanes, [&](int other) {
      equal |= uint32_t(lanes->operands[other][1] == lanes->operands[lane][1]) << other;
    });
    lanes->results[lane][0] = equal;
  });
}
void gradc_emulated_match_all(const GradcLanes *lanes) {
  uint32_t value = lanes->operands[std::countr_zero(lanes->mask)][1];
  bool agree = true;
  forLanes(*lanes, [&](int lane) { agree = agree && lanes->operands[lane][1] == value; });
  forLanes(*lanes, [&](int lane) {
    lanes->results[lane][0] = agree ? lanes->mask : 0;
    lanes->results[lane][1] = agree;
  });
}

void gradc_emulated_reduce_add(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return a + b; });
}
void gradc_emulated_reduce_min(const GradcLanes *lanes) {
  reduce<int32_t>(*lanes, [](int32_t a, int32_t b) { return std::min(a, b); });
}
void gradc_emulated_reduce_max(const GradcLanes *lanes) {
  reduce<int32_t>(*lanes, [](int32_t a, int32_t b) { return std::max(a, b); });
}
void gradc_emulated_reduce_umin(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return std::min(a, b); });
}
void gradc_emulated_reduce_umax(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return std::max(a, b); });
}
void gradc_emulated_reduce_and(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return a & b; });
}
void gradc_emulated_reduce_or(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return a | b; });
}
void gradc_emulated_reduce_xor(const GradcLanes *lanes) {
  reduce<uint32_t>(*lanes, [](uint32_t a, uint32_t b) { return a ^ b; });
}

} // extern "C"

} // namespace gradc::rt::emulator

// Machine: lanes of a warp that meet at an operation of the whole warp.
#include "runtime/emulator/Functions.h"
#include "runtime/emulator/Machine.h"

#include <algorithm>

#include <fmt/format.h>

namespace gradc::rt::emulator {
namespace {

Meeting &meetingOf(std::vector<Meeting> &meetings, const GradcSite &site, uint32_t mask) {
  for (Meeting &meeting : meetings)
    if (meeting.lanes.mask & mask)
      return meeting;
  Meeting &meeting = meetings.emplace_back();
  meeting.site = &site;
  meeting.arrived = 0;
  meeting.lanes.mask = mask;
  return meeting;
}

} // namespace

void Machine::collective(const GradcSite &site, uint32_t mask, const uint32_t *operands,
                         uint32_t *results) {
  Thread &self = *current_;
  Warp &warp = warps_[self.warp()];
  if (!(mask & self.bit()))
    fail([&] {
      return fmt::format("divergent: the lane is not in its own mask {:#010x}: {}", mask,
                         site.text);
    });
  if (uint32_t ended = mask & ~warp.live)
    fail([&] {
      return fmt::format("divergent: the mask {:#010x} has lanes that have ended or do not exist "
                         "({:#010x}): {}",
                         mask, ended, site.text);
    });
  Meeting &meeting = meetingOf(warp.meetings, site, mask);
  if (meeting.site != &site || meeting.lanes.mask != mask)
    fail([&] {
      return fmt::format(
          "divergent: this lane is at `{}` with mask {:#010x}, others of the warp are "
          "at `{}` with mask {:#010x}",
          site.text, mask, meeting.site->text, meeting.lanes.mask);
    });
  meeting.arrived |= self.bit();
  meeting.lanes.operands[self.lane()] = operands;
  meeting.lanes.results[self.lane()] = results;
  if (meeting.arrived != mask)
    return wait(self, site);
  current_->waiting = &site; // for what the operation itself reports
  site.collective(&meeting.lanes);
  current_->waiting = nullptr;
  warp.ready |= mask & ~self.bit();
  warp.meetings.erase(warp.meetings.begin() + (&meeting - warp.meetings.data()));
}

void Machine::synchroniseWarp() {
  time_ += tick;
  Warp &warp = warps_[current_->warp()];
  warp.ordered[current_->warp()] = time_;
  clock_.now = time_ | Stamp(current_->index);
}

extern "C" {

void gradc_emulated_collective(S site, I mask, P operands, P results) {
  machine->collective(*site, uint32_t(mask), static_cast<const uint32_t *>(operands),
                      static_cast<uint32_t *>(results));
}
void gradc_emulated_barrier(I number, I threads, S site) {
  machine->barrier(number, threads, *site);
}
void gradc_emulated_sync_warp(const GradcLanes *) { machine->synchroniseWarp(); }

I gradc_emulated_thread() { return machine->current().index; }
I gradc_emulated_lane() { return machine->current().lane(); }
I gradc_emulated_threads() { return I(machine->launch().threads); }
I gradc_emulated_block() { return I(machine->block()); }
I gradc_emulated_blocks() { return I(machine->launch().blocks); }
I gradc_emulated_one() { return 1; }
I gradc_emulated_zero() { return 0; }
I gradc_emulated_warp_size() { return 32; }

} // extern "C"

} // namespace gradc::rt::emulator

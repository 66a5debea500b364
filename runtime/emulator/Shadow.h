// Shadow memory: what is known of who touched a piece of memory last, and whether an access now is
// ordered after it.
//
// Events that order accesses (a block starts, a barrier completes, a warp synchronises) advance one
// clock; an access takes down the clock and its thread. Each warp keeps, for every warp of the
// block, the time before which that warp's accesses are ordered before its own (a vector clock).
// So a missing barrier shows whatever schedule ran.
//
// A cell stands for as many bytes as divide every access of the kernel, so that two threads which
// write neighbours never share one. Cells need no clearing between blocks and kernels: what is
// older than the block's or launch's start does not count.
#pragma once

#include <bit>
#include <cstdint>

namespace gradc::rt::emulator {

/// When an access was and whose: the clock in the upper 30 bits, two flags, and either a thread's
/// number or a set of warps of which lanes made it.
using Stamp = uint64_t;

inline constexpr Stamp tick = Stamp(1) << 34;
inline constexpr Stamp lastTime = Stamp(1) << 63; ///< the clock must be set back before it is there
inline constexpr Stamp specialFlag = Stamp(1) << 33;
inline constexpr Stamp inFlight = specialFlag; ///< of a write: by an async copy not waited for
inline constexpr Stamp otherBlocks =
    specialFlag; ///< of a read: other blocks of the launch read too
inline constexpr Stamp ofWarps = Stamp(1) << 32;

inline Stamp timeOf(Stamp stamp) { return stamp & ~(tick - 1); }
inline uint32_t identity(Stamp stamp) { return uint32_t(stamp); }
/// The set of warps that an access's threads belong to.
inline uint32_t warpsOf(Stamp stamp) {
  return stamp & ofWarps ? identity(stamp) : uint32_t(1) << (identity(stamp) / 32);
}

struct Cell {
  Stamp write;
  Stamp read;
};

/// The clock as the accessing thread (or warp) sees it.
struct Clock {
  Stamp now;            ///< with who it is
  Stamp block;          ///< what is before is of earlier blocks
  Stamp launch;         ///< ... of earlier launches
  const Stamp *ordered; ///< [warp]: that warp's accesses before this time are ordered
};

enum class Conflict {
  none,
  uninitialised,   ///< a read of shared memory that the block has not written
  inFlight,        ///< an access to what an async copy, not waited for, will write
  afterWrite,      ///< no barrier since another thread's write
  afterRead,       ///< a write with no barrier since another thread's read
  otherBlockWrote, ///< blocks of a launch have no order
  otherBlockRead,
};

/// Whether an access of this block that `stamp` records happens before the present one.
inline bool isOrdered(Stamp stamp, const Clock &clock) {
  if (!(stamp & ofWarps))
    return identity(stamp) == (clock.now & (ofWarps | UINT32_MAX)) ||
           stamp < clock.ordered[identity(stamp) / 32];
  for (uint32_t warps = identity(stamp); warps; warps &= warps - 1)
    if (stamp >= clock.ordered[std::countr_zero(warps)])
      return false;
  return true;
}

template <bool isShared> Conflict conflictWithWrite(Stamp write, const Clock &clock) {
  if (write < clock.block)
    return !isShared && write >= clock.launch ? Conflict::otherBlockWrote : Conflict::none;
  if (write & inFlight)
    return Conflict::inFlight;
  return isOrdered(write, clock) ? Conflict::none : Conflict::afterWrite;
}

/// Whether blocks before the present one read a cell in this launch.
inline bool hasOtherReaders(Stamp read, const Clock &clock) {
  return read >= clock.launch && (read < clock.block || (read & otherBlocks));
}

/// Checks a read and takes it down.
template <bool isShared> Conflict read(Cell &cell, const Clock &clock) {
  if (isShared && cell.write < clock.block)
    return Conflict::uninitialised;
  Conflict conflict = conflictWithWrite<isShared>(cell.write, clock);
  if (conflict != Conflict::none)
    return conflict;
  Stamp flags = !isShared && hasOtherReaders(cell.read, clock) ? otherBlocks : 0;
  if (cell.read < clock.block || isOrdered(cell.read, clock))
    cell.read = clock.now | flags;
  else // what comes must be ordered after both
    cell.read = timeOf(clock.now) | flags | ofWarps | warpsOf(cell.read) | warpsOf(clock.now);
  return Conflict::none;
}

/// Checks a write and takes it down; `flags` is inFlight where an async copy is issued.
template <bool isShared> Conflict write(Cell &cell, const Clock &clock, Stamp flags = 0) {
  Conflict conflict = conflictWithWrite<isShared>(cell.write, clock);
  if (conflict != Conflict::none)
    return conflict;
  if (!isShared && hasOtherReaders(cell.read, clock))
    return Conflict::otherBlockRead;
  if (cell.read >= clock.block && !isOrdered(cell.read, clock))
    return Conflict::afterRead;
  cell.write = clock.now | flags;
  cell.read = 0;
  return Conflict::none;
}

} // namespace gradc::rt::emulator

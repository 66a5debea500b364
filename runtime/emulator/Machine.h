// The state of the emulator while it runs a launch: threads and warps of the present block, its
// shared memory, and shadow memory. The functions that kernels call find it in `machine`.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Fibers.h"
#include "runtime/emulator/Shadow.h"

namespace gradc::rt::emulator {

/// An async copy that has been issued and not yet waited for.
struct AsyncCopy {
  std::byte *destination;
  const std::byte *source;
  int64_t sourceBytes; ///< the rest of the destination becomes zero
  int64_t group;
  const GradcSite *site;
};

struct Thread {
  Fiber fiber = nullptr;
  int index = 0;                      ///< in the block
  const GradcSite *waiting = nullptr; ///< at which barrier or collective; null: at none
  std::vector<AsyncCopy> copies;      ///< in the order of issue
  int64_t committedGroups = 0;

  int lane() const { return index % 32; }
  int warp() const { return index / 32; }
  uint32_t bit() const { return uint32_t(1) << lane(); }
};

/// Lanes of a warp on their way to one collective.
struct Meeting {
  const GradcSite *site;
  uint32_t arrived;
  GradcLanes lanes;
};

struct Warp {
  uint32_t live = 0;                      ///< lanes that have not ended
  uint32_t ready = 0;                     ///< lanes that wait for their turn only
  uint32_t atBarrier = 0;                 ///< lanes that wait at a barrier
  const GradcSite *barrierSite = nullptr; ///< where those are
  int32_t barrier = 0;                    ///< and its number
  std::vector<Meeting> meetings;          ///< of lanes that are disjoint
  std::array<Stamp, 32> ordered{};        ///< Clock::ordered
};

/// One of the block's barriers while threads wait at it.
struct Barrier {
  int64_t expected = 0; ///< threads; 0: all that have not ended
  int64_t arrived = 0;
};

/// A buffer of the launch and its part of the shadow memory. Buffers that overlap share cells.
struct GlobalBuffer {
  std::byte *begin;
  int64_t bytes;
  bool writable;
  Cell *cells; ///< of begin
};

/// Where the buffers of a part lie among all.
struct Part {
  int64_t firstBlock;
  std::size_t firstBuffer, buffers;
};

class Machine {
public:
  explicit Machine(WarpOrder order) : order_(order) {}

  Status run(const EmulatedLaunch &launch);
  const std::vector<EmulatedTraffic> &traffic() const { return traffic_; }

  // --- what kernels ask for
  const EmulatedLaunch &launch() const { return *launch_; }
  int64_t block() const { return block_; }
  Thread &current() { return *current_; }
  std::byte *shared() { return shared_; }
  /// `threads`: how many must come; 0: all of the block.
  void barrier(int32_t number, int64_t threads, const GradcSite &site);
  void collective(const GradcSite &site, uint32_t mask, const uint32_t *operands,
                  uint32_t *results);
  void synchroniseWarp();
  void copyAsync(std::byte *destination, const std::byte *source, int64_t sourceBytes,
                 const GradcSite &site);
  void commitCopies() { ++current_->committedGroups; }
  void waitCopies(int64_t groupsInFlight);

  // --- checks of accesses (Memory.cpp)
  enum class Access { read, write, issueCopy, finishCopy };
  void accessShared(const std::byte *address, int64_t bytes, Access access, const GradcSite &site);
  void accessGlobal(const std::byte *address, int64_t bytes, Access access, const GradcSite &site);
  bool isShared(const std::byte *address) const {
    return address >= shared_ && address < shared_ + sharedBytes_;
  }
  void checkAlignment(const std::byte *address, const GradcSite &site);
  /// Memory that all lanes of the current warp read together.
  void readSharedAsWarp(const std::byte *address, int64_t bytes, const GradcSite &site);

  /// Ends the launch with what `describe` returns. The fibres are abandoned where they are: nothing
  /// that needs a destructor may be alive on this one's stack.
  template <typename Describe> [[noreturn]] void fail(Describe &&describe) {
    report(describe());
    abandon();
  }

private:
  // Scheduler.cpp
  Status prepare();
  Status runBlock();
  void startThreads();
  Thread *takeReady();
  void wait(Thread &self, const GradcSite &site);
  void completeBarriers();
  void complete(int32_t barrier);
  [[noreturn]] void endThread();
  Status deadlock();
  void report(const std::string &what);
  [[noreturn]] void abandon();
  static void threadMain(boost::context::detail::transfer_t from);
  std::string whereIs(const Thread &thread) const;

  // Memory.cpp
  void placeBuffers();
  /// Cells lie at multiples of their size: of the address, not of the buffer's start.
  std::uintptr_t cellNumber(const std::byte *address) const {
    return reinterpret_cast<std::uintptr_t>(address) >> globalShift_;
  }
  const GlobalBuffer &bufferOf(const std::byte *address, int64_t bytes, Access access,
                               const GradcSite &site);
  /// The buffers that the present block may access: its launch's and its part's.
  std::array<std::span<const GlobalBuffer>, 2> accessible() const;
  std::string bufferName(const GlobalBuffer &buffer) const;

  WarpOrder order_;
  FiberStacks stacks_;
  const EmulatedLaunch *launch_ = nullptr;
  int64_t block_ = 0;
  bool descending_ = false; ///< in this block
  Status status_;

  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  Thread *current_ = nullptr;
  Fiber scheduler_ = nullptr, ended_ = nullptr;
  int64_t alive_ = 0; ///< threads that have not ended
  std::array<Barrier, 16> barriers_{};
  int64_t atBarriers_ = 0; ///< threads that wait at any of them

  Stamp time_ = 0;   ///< the clock
  Clock clock_ = {}; ///< as the current thread sees it
  std::vector<std::byte> sharedStorage_;
  std::byte *shared_ = nullptr;
  int64_t sharedBytes_ = 0;
  int sharedShift_ = 0, globalShift_ = 0; ///< log2 of the bytes of a cell
  std::vector<Cell> sharedCells_, globalCells_;
  std::vector<GlobalBuffer> buffers_;
  std::vector<EmulatedTraffic> traffic_; ///< of buffers_
  std::vector<Part> parts_;              ///< their buffers are in buffers_, behind the launch's
  std::size_t part_ = 0;                 ///< of the present block
  std::vector<void *> addresses_;        ///< of the launch's buffers, as a kernel takes them
};

/// The machine that runs on this thread; null outside of Machine::run.
extern thread_local Machine *machine;

} // namespace gradc::rt::emulator

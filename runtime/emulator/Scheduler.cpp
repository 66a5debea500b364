// Machine: runs the threads of a block in turn, and brings them together at barriers.
#include "runtime/emulator/Machine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace gradc::rt::emulator {

thread_local Machine *machine = nullptr;

Status Machine::run(const EmulatedLaunch &launch) {
  launch_ = &launch;
  status_ = Status();
  try {
    GRADC_RETURN_IF_ERROR(prepare());
  } catch (const std::bad_alloc &) {
    return Status::machine(fmt::format("emulated kernel {}: no memory for its shadow memory, which "
                                       "is up to 16 times its buffers'; free memory",
                                       launch.name));
  }
  machine = this;
  Status status;
  for (block_ = 0; block_ < launch.blocks && status.ok(); ++block_)
    status = runBlock();
  machine = nullptr;
  return status;
}

Status Machine::prepare() {
  const GradcEmulatedKernel &kernel = *launch_->kernel;
  if (launch_->threads < 1 || launch_->threads > 1024)
    return Status::defect(fmt::format("emulated kernel {}: {} threads a block; expected 1 to 1024",
                                      launch_->name, launch_->threads));
  if (kernel.threads != 0 && launch_->threads != kernel.threads)
    return Status::defect(fmt::format("emulated kernel {}: launched with {} threads a block; it is "
                                      "made for {}",
                                      launch_->name, launch_->threads, kernel.threads));
  if (int64_t(launch_->buffers.size()) != kernel.bufferCount)
    return Status::defect(fmt::format("emulated kernel {}: launched with {} buffers; it takes {}",
                                      launch_->name, launch_->buffers.size(), kernel.bufferCount));
  GRADC_RETURN_IF_ERROR(stacks_.reserve(launch_->threads));
  threads_.resize(launch_->threads);
  warps_.resize((launch_->threads + 31) / 32);

  constexpr int64_t sharedAlignment = 1024;
  sharedBytes_ = kernel.staticSharedBytes + launch_->dynamicSharedBytes;
  sharedStorage_.resize(
      std::max<std::size_t>(sharedStorage_.size(), sharedBytes_ + sharedAlignment));
  auto address = reinterpret_cast<std::uintptr_t>(sharedStorage_.data());
  shared_ = sharedStorage_.data() + (-address & (sharedAlignment - 1));
  sharedShift_ = std::countr_zero(uint64_t(kernel.sharedCell));
  std::size_t cells = (sharedBytes_ >> sharedShift_) + 1;
  sharedCells_.resize(std::max(sharedCells_.size(), cells));

  if (time_ >= lastTime / 2) { // set the clock back, and forget what it showed
    time_ = 0;
    std::fill(sharedCells_.begin(), sharedCells_.end(), Cell{});
    std::fill(globalCells_.begin(), globalCells_.end(), Cell{});
  }
  time_ += tick;
  clock_.launch = time_;
  placeBuffers();
  return Status();
}

Status Machine::runBlock() {
  descending_ =
      order_ == WarpOrder::descending || (order_ == WarpOrder::alternating && block_ % 2 == 1);
  while (part_ + 1 < parts_.size() && parts_[part_ + 1].firstBlock <= block_)
    ++part_;
  time_ += tick;
  clock_.block = time_;
  // Not a number in every floating-point type, and no sensible index.
  if (sharedBytes_ > 0)
    std::memset(shared_, 0xff, std::size_t(sharedBytes_));
  startThreads();
  current_ = takeReady();
  switchFiber(current_->fiber, &scheduler_);
  // Every thread has ended, none can go on, or one has failed.
  GRADC_RETURN_IF_ERROR(status_);
  return alive_ == 0 ? Status() : deadlock();
}

void Machine::startThreads() {
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    int64_t lanes = std::min<int64_t>(32, launch_->threads - int64_t(w) * 32);
    uint32_t all = ~uint32_t(0) >> (32 - lanes);
    Warp &warp = warps_[w];
    warp.live = warp.ready = all;
    warp.atBarrier = 0;
    warp.meetings.clear();
    warp.ordered.fill(time_);
  }
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    Thread &thread = threads_[i];
    thread.fiber = stacks_.start(int64_t(i), &Machine::threadMain);
    thread.index = int(i);
    thread.waiting = nullptr;
    thread.copies.clear();
    thread.committedGroups = 0;
  }
  alive_ = launch_->threads;
  barriers_ = {};
  atBarriers_ = 0;
  current_ = nullptr;
}

void Machine::threadMain(boost::context::detail::transfer_t from) {
  *static_cast<Fiber *>(from.data) = from.fctx;
  Machine &self = *machine;
  self.launch_->kernel->thread(self.addresses_.data(), self.launch_->extent, self.block_);
  self.endThread();
}

/// The next thread in order that is ready, of the current warp if it has one; sets the clock to its
/// view. Null when none is ready.
Thread *Machine::takeReady() {
  std::size_t w = current_ ? std::size_t(current_->warp()) : 0;
  if (!current_ || warps_[w].ready == 0) {
    std::size_t count = warps_.size(), i = 0;
    while (i < count && warps_[descending_ ? count - 1 - i : i].ready == 0)
      ++i;
    if (i == count)
      return nullptr;
    w = descending_ ? count - 1 - i : i;
  }
  Warp &warp = warps_[w];
  int lane = descending_ ? 31 - std::countl_zero(warp.ready) : std::countr_zero(warp.ready);
  warp.ready &= ~(uint32_t(1) << lane);
  Thread *thread = &threads_[w * 32 + lane];
  thread->waiting = nullptr;
  clock_.now = time_ | Stamp(thread->index);
  clock_.ordered = warp.ordered.data();
  return thread;
}

/// Suspends a thread until another has made its lane ready and its turn has come.
void Machine::wait(Thread &self, const GradcSite &site) {
  self.waiting = &site;
  Thread *next = takeReady();
  if (next)
    current_ = next;
  if (next != &self)
    switchFiber(next ? next->fiber : scheduler_, &self.fiber);
}

void Machine::barrier(int32_t number, int64_t threads, const GradcSite &site) {
  Thread &self = *current_;
  Warp &warp = warps_[self.warp()];
  if (number < 0 || number >= int32_t(barriers_.size()))
    fail([&] { return fmt::format("barrier {}: expected 0 to 15: {}", number, site.text); });
  Barrier &barrier = barriers_[number];
  if (barrier.arrived == 0)
    barrier.expected = threads;
  else if (barrier.expected != threads)
    fail([&] {
      return fmt::format("barrier {} is for {} threads here and for {} elsewhere (0: all): {}",
                         number, threads, barrier.expected, site.text);
    });
  if (warp.atBarrier == 0) {
    warp.barrierSite = &site;
    warp.barrier = number;
  } else if (warp.barrierSite != &site || warp.barrier != number) {
    fail([&] {
      return fmt::format("divergent barrier: this lane is at `{}` and another of its warp at `{}`; "
                         "all lanes of a warp must reach a barrier together",
                         site.text, warp.barrierSite->text);
    });
  }
  warp.atBarrier |= self.bit();
  ++barrier.arrived;
  ++atBarriers_;
  completeBarriers();
  wait(self, site);
}

/// Completes the barriers at which all have arrived that must.
void Machine::completeBarriers() {
  if (atBarriers_ == 0)
    return;
  for (std::size_t i = 0; i < barriers_.size(); ++i) {
    const Barrier &barrier = barriers_[i];
    if (barrier.arrived > 0 && barrier.arrived == (barrier.expected ? barrier.expected : alive_))
      complete(int32_t(i));
  }
}

void Machine::complete(int32_t number) {
  time_ += tick;
  std::array<Stamp, 32> ordered{}; // what any of the warps that came knew, and what they did
  for (const Warp &warp : warps_)
    if (warp.atBarrier && warp.barrier == number)
      for (std::size_t i = 0; i < ordered.size(); ++i)
        ordered[i] = std::max(ordered[i], warp.ordered[i]);
  for (std::size_t i = 0; i < warps_.size(); ++i)
    if (warps_[i].atBarrier && warps_[i].barrier == number)
      ordered[i] = time_;
  for (Warp &warp : warps_)
    if (warp.atBarrier && warp.barrier == number) {
      warp.ordered = ordered;
      warp.ready |= warp.atBarrier;
      warp.atBarrier = 0;
    }
  atBarriers_ -= barriers_[number].arrived;
  barriers_[number].arrived = 0;
  current_ = nullptr; // the first warp in order goes on
}

void Machine::endThread() {
  Thread &self = *current_;
  Warp &warp = warps_[self.warp()];
  if (!self.copies.empty())
    fail([&] {
      return fmt::format(
          "ends with an async copy in flight: {}; wait for all groups before the end",
          self.copies.front().site->text);
    });
  for (const Meeting &meeting : warp.meetings)
    if (meeting.lanes.mask & self.bit())
      fail([&] {
        return fmt::format(
            "ends while lanes of its warp wait for it at `{}`; end together, or leave "
            "it out of the mask",
            meeting.site->text);
      });
  warp.live &= ~self.bit();
  --alive_;
  completeBarriers(); // threads that have ended do not count
  Thread *next = takeReady();
  if (next)
    current_ = next;
  switchFiber(next ? next->fiber : scheduler_, &ended_);
  __builtin_unreachable();
}

void Machine::report(const std::string &what) {
  status_ = Status::defect(
      fmt::format("emulated kernel {}: {}: {}", launch_->name, whereIs(*current_), what));
}

void Machine::abandon() {
  switchFiber(scheduler_, &ended_);
  __builtin_unreachable();
}

std::string Machine::whereIs(const Thread &thread) const {
  return fmt::format("block {}, thread {} (warp {}, lane {})", block_, thread.index, thread.warp(),
                     thread.lane());
}

/// Says where the first threads of different places wait.
Status Machine::deadlock() {
  std::string places;
  const GradcSite *last = nullptr;
  int listed = 0;
  for (const Thread &thread : threads_)
    if (thread.waiting && thread.waiting != last && listed < 4) {
      places += fmt::format("{}thread {} at `{}`", listed++ ? ", " : "", thread.index,
                            thread.waiting->text);
      last = thread.waiting;
    }
  return Status::defect(fmt::format(
      "emulated kernel {}: block {}: deadlock, {} of {} threads have not ended and none can go on: "
      "{}; every thread must reach the same barriers and collectives",
      launch_->name, block_, alive_, launch_->threads, places));
}

} // namespace gradc::rt::emulator

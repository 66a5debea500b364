// The one pool of compute threads of the process. Work comes as a number of independent tasks
// handed out through one atomic counter, so that which thread runs a task never matters; whoever
// splits the work keeps the split independent of the number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "runtime/Status.h"

namespace gradc::rt {

/// Stack of every thread that may run a kernel: kernels keep rows and tiles there.
inline constexpr std::size_t kernelStackBytes = std::size_t(16) << 20;

/// Runs `body` on a fresh thread with a stack of kernelStackBytes and waits for its end. The thread
/// that calls ThreadPool::parallelFor takes its share of the tasks, so it needs such a stack too.
Status runOnKernelStack(const std::function<void()> &body);

/// Processors this process may run on, by its affinity mask; at least 1.
int availableProcessors();

class ThreadPool {
public:
  /// A pool of `threads` threads in all, the caller of parallelFor included (so it starts
  /// threads - 1). With `pin`, each started thread stays on one processor of the affinity mask.
  static Expected<std::unique_ptr<ThreadPool>> create(int threads, bool pin = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int threads() const { return threads_; }

  /// Calls function(task, worker) for every task in [0, tasks), in no particular order, and returns
  /// when all are done. `worker` in [0, threads()) tells apart what runs at the same time. One
  /// parallelFor at a time, and none from inside a task.
  template <typename Function> void parallelFor(int64_t tasks, Function &&function) {
    using Plain = std::remove_reference_t<Function>;
    auto call = [](void *context, int64_t task, int worker) {
      (*static_cast<Plain *>(context))(task, worker);
    };
    run(tasks, call, const_cast<std::remove_const_t<Plain> *>(&function));
  }

private:
  using Call = void (*)(void *context, int64_t task, int worker);
  struct Worker;

  ThreadPool(int threads, bool pin);
  void run(int64_t tasks, Call call, void *context);
  bool takeTasks(int worker);
  void workerLoop(int worker);
  static void *threadMain(void *worker);

  // The ticket holds (generation << taskBits) | next task. A thread owns a task once its
  // compare-and-swap on the ticket succeeded; success proves that the job fields it read belong to
  // that generation, because they are rewritten only after the ticket was closed for it.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<int32_t> epoch_{0}; ///< what idle workers sleep on
  std::atomic<int32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> tasks_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<void *> context_{nullptr};

  int threads_;
  bool pin_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace gradc::rt

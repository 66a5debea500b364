// ThreadPool: workers spin for some tens of microseconds after each job, since a step is a dense
// sequence of launches, and then sleep on a futex.
#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <pthread.h>
#include <sched.h>

#include <fmt/format.h>

namespace gradc::rt {
namespace {

constexpr int taskBits = 40;
constexpr uint64_t taskMask = (uint64_t(1) << taskBits) - 1;
constexpr std::chrono::microseconds spinTime(100);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Spins until ready() or until spinTime is over; says whether it became ready.
template <typename Ready> bool spinUntil(Ready ready) {
  auto end = std::chrono::steady_clock::now() + spinTime;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready())
        return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

Expected<pthread_t> startThread(void *(*function)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kernelStackBytes);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, function, argument);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return Status::machine(
        fmt::format("cannot start a thread with a stack of {} MiB: {}; raise the "
                    "limits on processes and memory, or lower --threads",
                    kernelStackBytes >> 20, std::strerror(error)));
  return thread;
}

} // namespace

Status runOnKernelStack(const std::function<void()> &body) {
  auto main = [](void *argument) -> void * {
    (*static_cast<const std::function<void()> *>(argument))();
    return nullptr;
  };
  GRADC_ASSIGN_OR_RETURN(pthread_t thread,
                         startThread(main, const_cast<std::function<void()> *>(&body)));
  pthread_join(thread, nullptr);
  return Status();
}

int availableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return std::max(1, CPU_COUNT(&set));
}

struct ThreadPool::Worker {
  ThreadPool *pool;
  int index;
  pthread_t thread;
};

ThreadPool::ThreadPool(int threads, bool pin) : threads_(threads), pin_(pin) {}

Expected<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads, bool pin) {
  if (threads < 1 || threads > 4096)
    return Status::user(fmt::format("--threads {}: expected a number from 1 to 4096", threads));
  std::unique_ptr<ThreadPool> pool(new ThreadPool(threads, pin));
  for (int index = 1; index < threads; ++index) {
    auto worker = std::make_unique<Worker>(Worker{pool.get(), index, {}});
    GRADC_ASSIGN_OR_RETURN(worker->thread, startThread(&ThreadPool::threadMain, worker.get()));
    pool->workers_.push_back(std::move(worker));
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (auto &worker : workers_)
    pthread_join(worker->thread, nullptr);
}

void *ThreadPool::threadMain(void *argument) {
  auto *worker = static_cast<Worker *>(argument);
  worker->pool->workerLoop(worker->index);
  return nullptr;
}

void ThreadPool::workerLoop(int worker) {
  if (pin_) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
      int wanted = worker % CPU_COUNT(&allowed);
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
          cpu_set_t one;
          CPU_ZERO(&one);
          CPU_SET(cpu, &one);
          // A refused pin costs speed only.
          (void)pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
          break;
        }
    }
  }
  while (!stopping_.load(std::memory_order_relaxed)) {
    int32_t epoch = epoch_.load();
    if (takeTasks(worker))
      continue;
    if (spinUntil([&] { return epoch_.load(std::memory_order_relaxed) != epoch; }))
      continue;
    sleepers_.fetch_add(1);
    epoch_.wait(epoch);
    sleepers_.fetch_sub(1);
  }
}

/// Runs tasks until none is left; says whether it ran any.
bool ThreadPool::takeTasks(int worker) {
  bool ran = false;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (true) {
    Call call = call_.load(std::memory_order_acquire);
    void *context = context_.load(std::memory_order_acquire);
    int64_t tasks = tasks_.load(std::memory_order_acquire);
    int64_t task = int64_t(ticket & taskMask);
    if (task >= tasks)
      return ran;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      continue;
    call(context, task, worker);
    ran = true;
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == tasks)
      done_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void ThreadPool::run(int64_t tasks, Call call, void *context) {
  if (tasks <= 1 || threads_ == 1) {
    for (int64_t task = 0; task < tasks; ++task)
      call(context, task, 0);
    return;
  }
  // Close the old ticket first: a worker that reads a field of the new job and still holds the old
  // ticket must fail its compare-and-swap.
  uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> taskBits) + 1;
  ticket_.store(generation << taskBits | taskMask, std::memory_order_seq_cst);
  done_.store(0, std::memory_order_relaxed);
  call_.store(call, std::memory_order_release);
  context_.store(context, std::memory_order_release);
  tasks_.store(tasks, std::memory_order_release);
  ticket_.store(generation << taskBits, std::memory_order_seq_cst);
  epoch_.fetch_add(1);
  if (sleepers_.load() != 0)
    epoch_.notify_all();

  takeTasks(0);
  auto finished = [&] { return done_.load(std::memory_order_acquire) == tasks; };
  if (spinUntil(finished))
    return;
  while (!finished()) {
    int64_t seen = done_.load(std::memory_order_acquire);
    if (seen != tasks)
      done_.wait(seen);
  }
}

} // namespace gradc::rt

// Independent chains of multiply-adds in registers, and a triad over arrays in memory.
#include "runtime/cpu/Peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gradc::rt {
namespace {

using Clock = std::chrono::steady_clock;

/// `run` repeats a step of all chains and returns their sum, so that none can be left out. The
/// factor is to be below one: the values then settle, and stay clear of denormal numbers.
struct FmaKernel {
  const char *isa;
  double flopsPerRepeat;
  float (*run)(int64_t repeats, float factor, float addend);
};

// As many chains as it takes to hide the latency of two units (4 cycles each), and as leave two
// registers for the operands.
constexpr int chains = 12;

#if defined(__x86_64__)
__attribute__((target("avx512f"))) float runAvx512(int64_t repeats, float factor, float addend) {
  __m512 f = _mm512_set1_ps(factor), a = _mm512_set1_ps(addend), x[chains];
  for (int i = 0; i < chains; ++i)
    x[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < repeats; ++r)
#pragma GCC unroll 12 // the chains are in registers only where no index is left
    for (int i = 0; i < chains; ++i)
      x[i] = _mm512_fmadd_ps(x[i], f, a);
  float lanes[16 * chains];
  for (int i = 0; i < chains; ++i)
    _mm512_storeu_ps(lanes + std::ptrdiff_t(16) * i, x[i]);
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0f);
}

__attribute__((target("avx2,fma"))) float runAvx2(int64_t repeats, float factor, float addend) {
  __m256 f = _mm256_set1_ps(factor), a = _mm256_set1_ps(addend), x[chains];
  for (int i = 0; i < chains; ++i)
    x[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < repeats; ++r)
#pragma GCC unroll 12 // the chains are in registers only where no index is left
    for (int i = 0; i < chains; ++i)
      x[i] = _mm256_fmadd_ps(x[i], f, a);
  float lanes[8 * chains];
  for (int i = 0; i < chains; ++i)
    _mm256_storeu_ps(lanes + std::ptrdiff_t(8) * i, x[i]);
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0f);
}
#endif

float runGeneric(int64_t repeats, float factor, float addend) {
  constexpr int lanes = 4 * chains;
  float x[lanes];
  for (int i = 0; i < lanes; ++i)
    x[i] = static_cast<float>(i);
  for (int64_t r = 0; r < repeats; ++r)
    for (int i = 0; i < lanes; ++i)
      x[i] = x[i] * factor + addend;
  return std::accumulate(std::begin(x), std::end(x), 0.0f);
}

FmaKernel chooseKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return {"avx512", 2.0 * 16 * chains, runAvx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {"avx2", 2.0 * 8 * chains, runAvx2};
#endif
  return {"generic", 2.0 * 4 * chains, runGeneric};
}

/// Calls body(0) here and body(1), body(2), ... on threads of their own, all starting together, and
/// returns the seconds from the start to the last one's end.
template <typename Body> Expected<double> timeTogether(int threads, const Body &body) {
  enum Signal { wait, go, cancel };
  std::atomic<int> ready = 0, signal = wait;
  std::vector<Clock::time_point> ends(threads);
  auto work = [&](int thread) {
    ++ready;
    while (signal == wait)
      std::this_thread::yield();
    if (signal == cancel)
      return;
    body(thread);
    ends[thread] = Clock::now();
  };
  std::vector<std::jthread> others; // joined before anything above is destroyed
  try {
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back(work, thread);
  } catch (const std::system_error &error) {
    signal = cancel;
    return Status::machine("cannot start " + std::to_string(threads) + " threads: " + error.what() +
                           "; use fewer threads");
  }
  while (ready < threads - 1)
    std::this_thread::yield();
  Clock::time_point start = Clock::now();
  signal = go;
  work(0);
  others.clear();
  return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) - start).count();
}

Expected<double> measureFlops(const FmaKernel &kernel, int threads) {
  // Read from volatiles, written to one: the compiler can neither fold nor drop the arithmetic.
  volatile float factor = 0.999f, addend = 0.001f;
  std::vector<float> results(threads);
  int64_t repeats = 100'000; // under a millisecond; scaled to three by the first round
  double best = 0;
  // Many short rounds: some will fall between the interruptions of a busy machine.
  for (int round = 0; round < 50; ++round) {
    Expected<double> seconds = timeTogether(
        threads, [&](int thread) { results[thread] = kernel.run(repeats, factor, addend); });
    if (!seconds)
      return seconds.status();
    best =
        std::max(best, kernel.flopsPerRepeat * static_cast<double>(repeats) * threads / *seconds);
    if (round == 0)
      repeats = std::max<int64_t>(
          1, static_cast<int64_t>(static_cast<double>(repeats) * 0.003 / std::max(*seconds, 1e-6)));
  }
  volatile float sink = 0;
  for (float result : results)
    sink = sink + result;
  return best;
}

void triad(float *__restrict a, const float *__restrict b, const float *__restrict c, float s,
           int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    a[i] = b[i] + s * c[i];
}

Expected<double> measureBandwidth(int threads) {
  constexpr int64_t arrayBytes = int64_t{64} << 20, hugePage = int64_t{2} << 20;
  constexpr int64_t count = arrayBytes / static_cast<int64_t>(sizeof(float));
  struct Free {
    void operator()(float *memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory(
      static_cast<float *>(std::aligned_alloc(hugePage, 3 * arrayBytes)));
  if (!memory)
    return Status::machine("cannot allocate 192 MiB to measure the memory bandwidth; free memory");
  madvise(memory.get(), 3 * arrayBytes, MADV_HUGEPAGE); // only a wish: small pages do too
  float *a = memory.get(), *b = a + count, *c = b + count;
  double best = 0;
  for (int round = 0; round < 9; ++round) {
    Expected<double> seconds = timeTogether(threads, [&](int thread) {
      int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
      if (round > 0)
        return triad(a + begin, b + begin, c + begin, 0.5f, end - begin);
      // The first round touches the pages, each by the thread that will use it.
      for (float *array : {a, b, c})
        std::fill(array + begin, array + end, 1.0f);
    });
    if (!seconds)
      return seconds.status();
    if (round > 0)
      best = std::max(best, 3.0 * static_cast<double>(arrayBytes) / *seconds);
  }
  volatile float sink = a[count / 2];
  (void)sink;
  return best;
}

} // namespace

Expected<PeakRates> measurePeak(int threads) {
  if (threads < 1)
    return Status::user("cannot measure the peak with " + std::to_string(threads) +
                        " threads; use at least 1");
  FmaKernel kernel = chooseKernel();
  Expected<double> flops = measureFlops(kernel, threads);
  if (!flops)
    return flops.status();
  Expected<double> bandwidth = measureBandwidth(threads);
  if (!bandwidth)
    return bandwidth.status();
  return PeakRates{threads, kernel.isa, *flops, *bandwidth};
}

} // namespace gradc::rt

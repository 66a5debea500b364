// The matrix products of GPT-2 124M at 1024 tokens, as the runtime executes them: GFLOP/s and share
// of the machine's measured peak. Usage: bench_gemmshapes [threads [name part]].
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/kernels/Gpt2Products.h"
#include "runtime/cpu/Arena.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/GemmWorkspace.h"
#include "runtime/cpu/Peak.h"
#include "runtime/cpu/ThreadPool.h"

using namespace gradc::rt;
using gradc::bench::gpt2Products;
using gradc::bench::Shape;

namespace {

GradcMatrix matrix(int64_t rows, int64_t columns, bool transposed) {
  GradcMatrix result{};
  result.rowStride = transposed ? 1 : columns;
  result.columnStride = transposed ? rows : 1;
  result.batchStride[1] = rows * columns;
  return result;
}

/// Best seconds of several runs, about 0.4 s in all.
double time(GemmEngine &engine, const Shape &shape, Arena &memory) {
  GradcGemm gemm{};
  gemm.name = shape.name;
  gemm.m = shape.m;
  gemm.n = shape.n;
  gemm.k = shape.k;
  gemm.batch[0] = 1;
  gemm.batch[1] = shape.batch;
  gemm.a = matrix(shape.m, shape.k, shape.aTransposed);
  gemm.b = matrix(shape.k, shape.n, shape.bTransposed);
  gemm.c = matrix(shape.m, shape.n, false);
  gemm.workspaceBytes = shape.batch == 1 ? gemmWorkspaceBytes(shape.m, shape.n, shape.k) : 0;
  auto *workspace = memory.data();
  auto *a = reinterpret_cast<float *>(workspace + gemmPackLimitBytes);
  float *b = a + shape.batch * shape.m * shape.k, *c = b + shape.batch * shape.k * shape.n;
  double best = 1e9, total = 0;
  for (int run = 0; run < 50 && (run < 3 || total < 0.4); ++run) {
    auto begin = std::chrono::steady_clock::now();
    Status status = engine.run(gemm, a, b, c, workspace);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!status.ok()) {
      std::fprintf(stderr, "error: %s\n", status.message().c_str());
      std::exit(int(status.code()));
    }
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

int measure(int threads, const char *part) {
  auto peak = measurePeak(threads);
  auto pool = ThreadPool::create(threads);
  if (!peak.ok() || !pool.ok())
    return 1;
  int64_t bytes = gemmPackLimitBytes + 4 * (1024 * 50257 + 768 * 50257 + 1024 * 768) + 4096;
  auto memory = Arena::create(bytes, "the matrices", **pool);
  if (!memory.ok()) {
    std::fprintf(stderr, "error: %s\n", memory.status().message().c_str());
    return int(memory.status().code());
  }
  auto *values = reinterpret_cast<float *>(memory->data());
  for (int64_t i = 0; i < bytes / 4; ++i)
    values[i] = float(i % 13 - 6) * 0.125f;
  GemmEngine engine(**pool);
  std::printf("peak %.1f GFLOP/s (%s, %d threads)\n", peak->flopsPerSecond / 1e9, peak->isa,
              threads);
  double allFlops = 0, allSeconds = 0;
  for (const Shape &shape : gpt2Products) {
    if (!std::strstr(shape.name, part))
      continue;
    double seconds = time(engine, shape, *memory);
    double flops = 2.0 * double(shape.batch * shape.m * shape.n) * double(shape.k);
    std::printf("%-14s %6lld x %6lld x %6lld %3lld heads %8.1f GFLOP/s %5.1f %%\n", shape.name,
                (long long)shape.m, (long long)shape.n, (long long)shape.k, (long long)shape.batch,
                flops / seconds / 1e9, 100 * flops / seconds / peak->flopsPerSecond);
    allFlops += flops * double(shape.calls);
    allSeconds += seconds * double(shape.calls);
  }
  std::printf("a step         %.1f GFLOP/s, %.1f %% of the peak\n", allFlops / allSeconds / 1e9,
              100 * allFlops / allSeconds / peak->flopsPerSecond);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : availableProcessors();
  int code = 1;
  Status status = runOnKernelStack([&] { code = measure(threads, argc > 2 ? argv[2] : ""); });
  return status.ok() ? code : int(status.code());
}

// The matrix products of GPT-2 124M at 1024 tokens as generated kernels: GFLOP/s and the share of
// the machine's peak, which is measured before and after each shape, as other load moves both.
// Usage: bench_generatedgemm [threads [name part]].
#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/LoadedKernel.h"
#include "runtime/cpu/Arena.h"
#include "runtime/cpu/Peak.h"
#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace gradc;

namespace {

struct Shape {
  const char *name;
  int64_t m, n, k;
  bool aTransposed, bTransposed;
  int64_t batch; ///< heads
  int64_t calls; ///< a step
};

const Shape shapes[] = {
    {"qkv forward", 1024, 2304, 768, false, false, 1, 12},
    {"qkv dX", 1024, 768, 2304, false, true, 1, 12},
    {"qkv dW", 768, 2304, 1024, true, false, 1, 12},
    {"proj forward", 1024, 768, 768, false, false, 1, 12},
    {"proj dX", 1024, 768, 768, false, true, 1, 12},
    {"proj dW", 768, 768, 1024, true, false, 1, 12},
    {"fc1 forward", 1024, 3072, 768, false, false, 1, 12},
    {"fc1 dX", 1024, 768, 3072, false, true, 1, 12},
    {"fc1 dW", 768, 3072, 1024, true, false, 1, 12},
    {"fc2 forward", 1024, 768, 3072, false, false, 1, 12},
    {"fc2 dX", 1024, 3072, 768, false, true, 1, 12},
    {"fc2 dW", 3072, 768, 1024, true, false, 1, 12},
    {"head forward", 1024, 50257, 768, false, true, 1, 1},
    {"head dX", 1024, 768, 50257, false, false, 1, 1},
    {"head dW", 50257, 768, 1024, true, false, 1, 1},
    {"attention QK'", 256, 256, 64, false, true, 48, 12},
    {"attention PV", 256, 64, 256, false, false, 48, 12},
    {"attention dV", 256, 64, 256, true, false, 48, 12},
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

codegen::GemmSpec::Matrix matrix(int64_t rows, int64_t columns, bool transposed) {
  return {transposed ? 1 : columns, transposed ? rows : 1, rows * columns};
}

codegen::GemmSpec specOf(const Shape &shape) {
  codegen::GemmSpec spec;
  spec.m = shape.m, spec.n = shape.n, spec.k = shape.k, spec.batch = shape.batch;
  spec.a = matrix(shape.m, shape.k, shape.aTransposed);
  spec.b = matrix(shape.k, shape.n, shape.bTransposed);
  spec.c = matrix(shape.m, shape.n, false);
  return spec;
}

codegen::LoadedKernel compile(const codegen::GemmSpec &spec) {
  llvm::ExitOnError check("error: ");
  codegen::CpuTarget target = codegen::CpuTarget::host();
  return check(codegen::LoadedKernel::compile(
      target, [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
        codegen::emitGemm(module, name, spec, target);
      }));
}

/// Best seconds of several runs, about 0.4 s in all.
double bestSeconds(rt::ThreadPool &pool, const codegen::LoadedKernel &kernel,
                   const codegen::GemmSpec &spec, float *memory) {
  float *a = memory, *b = a + spec.batch * spec.m * spec.k, *c = b + spec.batch * spec.k * spec.n;
  void *buffers[] = {a, b, c};
  int64_t tasks = gemmTaskCount(spec);
  double best = 1e9, total = 0;
  for (int run = 0; run < 50 && (run < 3 || total < 0.4); ++run) {
    double begin = now();
    pool.parallelFor(tasks, [&](int64_t task, int) { kernel.function()(buffers, 0, task); });
    double seconds = now() - begin;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

int measure(int threads, const char *part) {
  auto pool = rt::ThreadPool::create(threads);
  if (!pool)
    return int(pool.status().code());
  int64_t bytes = 4 * (1024 * 50257 + 768 * 50257 + 1024 * 768) + 4096;
  auto memory = rt::Arena::create(bytes, "the matrices", **pool);
  if (!memory) {
    std::fprintf(stderr, "error: %s\n", memory.status().message().c_str());
    return int(memory.status().code());
  }
  auto *values = reinterpret_cast<float *>(memory->data());
  for (int64_t i = 0; i < bytes / 4; ++i)
    values[i] = float(i % 13 - 6) * 0.125f;
  double allFlops = 0, allSeconds = 0, peakFlops = 0, compileSeconds = 0;
  for (const Shape &shape : shapes) {
    if (!std::strstr(shape.name, part))
      continue;
    codegen::GemmSpec spec = specOf(shape);
    double begin = now();
    codegen::LoadedKernel kernel = compile(spec);
    compileSeconds += now() - begin;
    auto before = rt::measurePeak(threads);
    double seconds = bestSeconds(**pool, kernel, spec, values);
    auto after = rt::measurePeak(threads);
    if (!before || !after)
      return int((before ? after : before).status().code());
    double peak = std::max(before->flopsPerSecond, after->flopsPerSecond);
    double flops = 2.0 * double(shape.batch * shape.m * shape.n) * double(shape.k);
    std::printf("%-14s %6lld x %6lld x %6lld %3lld heads %4lld tasks %8.1f of %6.1f GFLOP/s %5.1f "
                "%%\n",
                shape.name, (long long)shape.m, (long long)shape.n, (long long)shape.k,
                (long long)shape.batch, (long long)gemmTaskCount(spec), flops / seconds / 1e9,
                peak / 1e9, 100 * flops / seconds / peak);
    allFlops += flops * double(shape.calls);
    allSeconds += seconds * double(shape.calls);
    peakFlops += peak * seconds * double(shape.calls);
  }
  std::printf("a step         %.1f GFLOP/s, %.1f %% of the peak; compiled in %.2f s\n",
              allFlops / allSeconds / 1e9, 100 * allFlops / peakFlops, compileSeconds);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : rt::availableProcessors();
  int code = 1;
  auto status = rt::runOnKernelStack([&] { code = measure(threads, argc > 2 ? argv[2] : ""); });
  return status.ok() ? code : int(status.code());
}

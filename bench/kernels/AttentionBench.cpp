// Prints how fast the attention kernels run, as JSON: milliseconds (best of many) and GFLOP/s,
// counting only the pairs that are not masked. Two threads unless the first argument says
// otherwise.
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/LoadedKernel.h"
#include "runtime/cpu/ThreadPool.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>

using namespace gradc::codegen;

namespace {

double nowMs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

/// Floats like those of a trained layer; no two rows alike.
std::vector<float> numbers(int64_t count) {
  std::vector<float> out(count);
  uint32_t state = 1;
  for (float &x : out) {
    state = state * 1664525 + 1013904223;
    x = static_cast<float>(state >> 8) * 0x1p-22f - 2;
  }
  return out;
}

double bestMs(gradc::rt::ThreadPool &pool, GradcKernelFn kernel, int64_t tasks,
              const std::vector<void *> &buffers) {
  double best = INFINITY;
  for (double start = nowMs(); nowMs() - start < 1000;) {
    double begin = nowMs();
    pool.parallelFor(tasks, [&](int64_t task, int) { kernel(buffers.data(), 0, task); });
    best = std::min(best, nowMs() - begin);
  }
  return best;
}

void bench(gradc::rt::ThreadPool &pool, int64_t batch, int64_t seq, int64_t heads,
           int64_t headDim) {
  AttentionSpec spec;
  spec.batch = batch, spec.seq = seq, spec.heads = spec.kvHeads = heads, spec.headDim = headDim;
  spec.scale = 1 / std::sqrt(static_cast<double>(headDim));
  int64_t width = heads * headDim;
  AttentionSpec::Strides packed{seq * 3 * width, 3 * width, headDim};
  spec.q = spec.k = spec.v = spec.dq = spec.dk = spec.dv = packed;
  spec.o = spec.dO = AttentionSpec::contiguous(seq, heads, headDim);
  CpuTarget target = CpuTarget::host();
  llvm::ExitOnError check("error: ");
  double start = nowMs();
  LoadedKernel forwardKernel = check(LoadedKernel::compile(
      target, [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
        emitAttentionForward(module, name, spec, target);
      }));
  LoadedKernel backwardKernel = check(LoadedKernel::compile(
      target, [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
        emitAttentionBackward(module, name, spec, target);
      }));
  double compileMs = nowMs() - start;

  std::vector<float> qkv = numbers(batch * seq * 3 * width), dQkv(qkv.size());
  std::vector<float> o(batch * seq * width), dO = numbers(o.size()), lse(batch * heads * seq);
  auto slice = [&](std::vector<float> &x, int i) { return x.data() + i * width; };
  double forward = bestMs(pool, forwardKernel.function(), attentionForwardTaskCount(spec),
                          {slice(qkv, 0), slice(qkv, 1), slice(qkv, 2), o.data(), lse.data()});
  double backward = bestMs(pool, backwardKernel.function(), attentionBackwardTaskCount(spec),
                           {slice(qkv, 0), slice(qkv, 1), slice(qkv, 2), o.data(), lse.data(),
                            dO.data(), slice(dQkv, 0), slice(dQkv, 1), slice(dQkv, 2)});
  std::printf("{\"batch\": %lld, \"seq\": %lld, \"heads\": %lld, \"head_dim\": %lld, "
              "\"threads\": %d, \"compile_ms\": %.0f, \"forward_ms\": %.3f, "
              "\"forward_gflops\": %.0f, \"backward_ms\": %.3f, \"backward_gflops\": %.0f}\n",
              static_cast<long long>(batch), static_cast<long long>(seq),
              static_cast<long long>(heads), static_cast<long long>(headDim), pool.threads(),
              compileMs, forward, attentionForwardFlops(spec) / forward * 1e-6, backward,
              attentionBackwardFlops(spec) / backward * 1e-6);
}

} // namespace

int main(int argc, char **argv) {
  auto pool = gradc::rt::ThreadPool::create(argc > 1 ? std::atoi(argv[1]) : 2, /*pin=*/true);
  if (!pool) {
    std::fprintf(stderr, "error: %s\n", pool.status().message().c_str());
    return 1;
  }
  auto status = gradc::rt::runOnKernelStack([&] {
    bench(**pool, 1, 1024, 12, 64);
    bench(**pool, 4, 256, 12, 64);
    bench(**pool, 1, 2048, 8, 128);
  });
  return status.ok() ? 0 : 1;
}

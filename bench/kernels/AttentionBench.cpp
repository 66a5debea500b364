// Prints how fast the attention kernels run, as JSON: milliseconds (best of many) and GFLOP/s,
// counting only the pairs that are not masked causally; f32, with dropout, bf16, with documents.
// Two threads unless the first argument says otherwise.
#include "codegen/cpu/Attention.h"
#include "codegen/cpu/LoadedKernel.h"
#include "runtime/cpu/ThreadPool.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace gradc::codegen;

namespace {

double nowMs() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

/// Numbers like those of a trained layer, no two rows alike, in memory of a dtype; narrow ones are
/// the upper halves of f32, which is bf16.
class Tensor {
public:
  Tensor(gradc::row::Dtype dtype, int64_t count)
      : elementBytes(gradc::row::byteSize(dtype)), bytes(count * elementBytes) {
    uint32_t state = 1;
    for (int64_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      float x = static_cast<float>(state >> 8) * 0x1p-22f - 2;
      const char *upper = reinterpret_cast<const char *>(&x) + sizeof x - elementBytes;
      std::memcpy(bytes.data() + i * elementBytes, upper, elementBytes);
    }
  }
  void *at(int64_t element) { return bytes.data() + element * elementBytes; }

private:
  int64_t elementBytes;
  std::vector<char> bytes;
};

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

struct Case {
  int64_t batch, seq, heads, headDim;
  gradc::row::Dtype dtype = gradc::row::Dtype::f32;
  double dropout = 0;
  int64_t document = 0; ///< tokens of a document; 0: no documents
};

AttentionSpec specOf(const Case &c) {
  AttentionSpec spec;
  spec.dtype = c.dtype, spec.dropout = c.dropout, spec.documents = c.document > 0;
  spec.batch = c.batch, spec.seq = c.seq, spec.headDim = c.headDim;
  spec.heads = spec.kvHeads = c.heads;
  spec.scale = 1 / std::sqrt(static_cast<double>(c.headDim));
  int64_t width = c.heads * c.headDim;
  AttentionSpec::Strides packed{c.seq * 3 * width, 3 * width, c.headDim};
  spec.q = spec.k = spec.v = spec.dq = spec.dk = spec.dv = packed;
  spec.o = spec.dO = AttentionSpec::contiguous(c.seq, c.heads, c.headDim);
  return spec;
}

void bench(gradc::rt::ThreadPool &pool, const Case &c) {
  AttentionSpec spec = specOf(c);
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

  int64_t width = c.heads * c.headDim, count = c.batch * c.seq * width;
  Tensor qkv(c.dtype, 3 * count), dQkv(c.dtype, 3 * count), o(c.dtype, count), dO(c.dtype, count);
  std::vector<float> lse(c.batch * c.heads * c.seq);
  int32_t seed = 1, step = 2, firstRow = 0, stream = 3;
  std::vector<int32_t> firstKeys;
  for (int64_t token = 0; token < c.batch * c.seq && c.document > 0; ++token)
    firstKeys.push_back(static_cast<int32_t>(token % c.seq / c.document * c.document));
  std::vector<void *> mask;
  if (c.document > 0)
    mask.push_back(firstKeys.data());
  if (c.dropout > 0)
    mask.insert(mask.end(), {&seed, &step, &firstRow, &stream});
  auto buffers = [&](std::vector<void *> inputs, std::vector<void *> results) {
    inputs.insert(inputs.end(), mask.begin(), mask.end());
    inputs.insert(inputs.end(), results.begin(), results.end());
    return inputs;
  };
  double forward =
      bestMs(pool, forwardKernel.function(), attentionForwardTaskCount(spec),
             buffers({qkv.at(0), qkv.at(width), qkv.at(2 * width)}, {o.at(0), lse.data()}));
  double backward =
      bestMs(pool, backwardKernel.function(), attentionBackwardTaskCount(spec),
             buffers({qkv.at(0), qkv.at(width), qkv.at(2 * width), o.at(0), lse.data(), dO.at(0)},
                     {dQkv.at(0), dQkv.at(width), dQkv.at(2 * width)}));
  std::printf(
      "{\"batch\": %lld, \"seq\": %lld, \"heads\": %lld, \"head_dim\": %lld, "
      "\"bits\": %lld, \"dropout\": %g, \"document\": %lld, \"threads\": %d, \"compile_ms\": %.0f, "
      "\"forward_ms\": %.3f, \"forward_gflops\": %.0f, \"backward_ms\": %.3f, "
      "\"backward_gflops\": %.0f}\n",
      static_cast<long long>(c.batch), static_cast<long long>(c.seq),
      static_cast<long long>(c.heads), static_cast<long long>(c.headDim),
      static_cast<long long>(8 * gradc::row::byteSize(c.dtype)), c.dropout,
      static_cast<long long>(c.document), pool.threads(), compileMs, forward,
      attentionForwardFlops(spec) / forward * 1e-6, backward,
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
    using gradc::row::Dtype;
    bench(**pool, {1, 1024, 12, 64});
    bench(**pool, {4, 256, 12, 64});
    bench(**pool, {1, 2048, 8, 128});
    bench(**pool, {1, 1024, 12, 64, Dtype::f32, 0.1});
    bench(**pool, {1, 1024, 12, 64, Dtype::bf16});
    bench(**pool, {1, 1024, 12, 64, Dtype::bf16, 0.1});
    for (int64_t document : {128, 100, 1024})
      bench(**pool, {1, 1024, 12, 64, Dtype::f32, 0, document});
  });
  return status.ok() ? 0 : 1;
}

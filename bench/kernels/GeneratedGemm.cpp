// The matrix products of GPT-2 124M as generated kernels, in f32, f32 with weights in panels, tf32
// and bf16: GFLOP/s and the share of the machine's f32 peak, which is measured before and after
// each shape, as other load moves all of them. Usage: bench_generatedgemm [threads [name part
// [tokens, 1024]]].
#include "bench/kernels/Gpt2Products.h"
#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/LoadedKernel.h"
#include "codegen/cpu/Panels.h"
#include "runtime/cpu/Arena.h"
#include "runtime/cpu/Peak.h"
#include "runtime/cpu/ThreadPool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace gradc;
using gradc::bench::gpt2Products;
using gradc::bench::Shape;

namespace {

/// Of generating, not of a step: B is read once.
const std::vector<Shape> tokenProducts = {
    {"token qkv", 1, 2304, 768, false, false, 1, 0},
    {"token fc2", 1, 768, 3072, false, false, 1, 0},
    {"token head", 1, 50257, 768, false, true, 1, 0},
};

/// Of a step of so many tokens.
std::vector<Shape> allProducts(int64_t tokens) {
  std::vector<Shape> all = gpt2Products;
  constexpr int64_t listed = 1024;
  for (Shape &shape : all) {
    shape.batch = shape.batch == 1 ? 1 : shape.batch * tokens / listed;
    for (int64_t *size : {&shape.m, &shape.k})
      *size = *size == listed ? tokens : *size;
  }
  all.insert(all.end(), tokenProducts.begin(), tokenProducts.end());
  return all;
}

/// More than panels add to a side of B.
constexpr int64_t mostPadding = 64;

/// What all three matrices are, and what operands are rounded to; the first variant is what the
/// others are compared with.
struct Variant {
  const char *name;
  row::Dtype dtype;
  codegen::InputRounding rounding;
  bool panels = false; ///< weights, which are B forward and of dX
};
const Variant variants[] = {{"f32", row::Dtype::f32, codegen::InputRounding::none},
                            {"panels", row::Dtype::f32, codegen::InputRounding::none, true},
                            {"tf32", row::Dtype::f32, codegen::InputRounding::tf32},
                            {"bf16", row::Dtype::bf16, codegen::InputRounding::none}};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

codegen::GemmSpec specOf(const Shape &shape, const Variant &variant, int threads) {
  auto matrix = [&](int64_t rows, int64_t columns, bool transposed) -> codegen::GemmSpec::Matrix {
    return {transposed ? 1 : columns, transposed ? rows : 1, rows * columns, variant.dtype};
  };
  codegen::GemmSpec spec;
  spec.m = shape.m, spec.n = shape.n, spec.k = shape.k, spec.batch = shape.batch;
  spec.a = matrix(shape.m, shape.k, shape.aTransposed);
  spec.b = matrix(shape.k, shape.n, shape.bTransposed);
  spec.c = matrix(shape.m, shape.n, false);
  spec.roundInputs = variant.rounding;
  spec.threads = threads;
  bool isWeight = shape.batch == 1 && !shape.aTransposed;
  spec.panelsB = variant.panels && isWeight && shape.m > 4;
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

/// Best seconds of each kernel over several runs, about 0.4 s in all: the kernels take turns, so
/// that other load slows all of them.
std::vector<double> bestSeconds(rt::ThreadPool &pool, const std::vector<codegen::GemmSpec> &specs,
                                const std::vector<codegen::LoadedKernel> &kernels,
                                std::byte *memory) {
  std::vector<double> best(specs.size(), 1e9);
  double total = 0;
  for (int run = 0; run < 50 && (run < 3 || total < 0.4 * double(specs.size())); ++run)
    for (size_t i = 0; i < specs.size(); ++i) {
      const codegen::GemmSpec &spec = specs[i];
      std::byte *b = memory + spec.batch * spec.m * spec.k * row::byteSize(spec.a.dtype);
      std::byte *c = b + spec.batch * (spec.k + mostPadding) * (spec.n + mostPadding) *
                             row::byteSize(spec.b.dtype);
      void *buffers[] = {memory, b, c};
      double begin = now();
      pool.parallelFor(gemmTaskCount(spec),
                       [&](int64_t task, int) { kernels[i].function()(buffers, 0, task); });
      double seconds = now() - begin;
      best[i] = std::min(best[i], seconds);
      total += seconds;
    }
  return best;
}

/// What a step takes in the products measured so far, by variant.
struct Total {
  double flops = 0, peakFlops = 0;
  std::vector<double> seconds = std::vector<double>(std::size(variants), 0.0);
};

bool measureShape(const Shape &shape, rt::ThreadPool &pool, int threads, std::byte *memory,
                  Total &total) {
  std::vector<codegen::GemmSpec> specs;
  std::vector<codegen::LoadedKernel> kernels;
  for (const Variant &variant : variants) {
    specs.push_back(specOf(shape, variant, threads));
    kernels.push_back(compile(specs.back()));
  }
  auto before = rt::measurePeak(threads);
  std::vector<double> seconds = bestSeconds(pool, specs, kernels, memory);
  auto after = rt::measurePeak(threads);
  if (!before || !after)
    return false;
  double peak = std::max(before->flopsPerSecond, after->flopsPerSecond);
  double flops = 2.0 * double(shape.batch * shape.m * shape.n) * double(shape.k);
  std::printf("%-14s %6lld x %6lld x %6lld %3lld heads, peak %6.1f:", shape.name,
              (long long)shape.m, (long long)shape.n, (long long)shape.k, (long long)shape.batch,
              peak / 1e9);
  for (size_t i = 0; i < specs.size(); ++i) {
    std::printf("  %s %6.1f GFLOP/s %5.1f %% %4lld tasks", variants[i].name,
                flops / seconds[i] / 1e9, 100 * flops / seconds[i] / peak,
                (long long)gemmTaskCount(specs[i]));
    total.seconds[i] += seconds[i] * double(shape.calls);
  }
  std::printf("\n");
  total.flops += flops * double(shape.calls);
  total.peakFlops += peak * seconds[0] * double(shape.calls);
  return true;
}

int measure(int threads, const char *part, int64_t tokens) {
  auto pool = rt::ThreadPool::create(threads);
  if (!pool)
    return int(pool.status().code());
  int64_t vocab = 50257 + mostPadding, width = 768 + mostPadding;
  int64_t bytes = 4 * (tokens * vocab + width * vocab + tokens * width) + 4096;
  auto memory = rt::Arena::create(bytes, "the matrices", **pool);
  if (!memory) {
    std::fprintf(stderr, "error: %s\n", memory.status().message().c_str());
    return int(memory.status().code());
  }
  // As bf16, each of these is itself and a zero.
  auto *values = reinterpret_cast<float *>(memory->data());
  for (int64_t i = 0; i < bytes / 4; ++i)
    values[i] = float(i % 13 - 6) * 0.125f;
  Total total;
  for (const Shape &shape : allProducts(tokens))
    if (std::strstr(shape.name, part) &&
        !measureShape(shape, **pool, threads, memory->data(), total))
      return 1;
  for (size_t i = 0; i < std::size(variants) && total.flops > 0; ++i)
    std::printf("a step of %s: %.1f GFLOP/s, %.2f times the rate of f32, %.1f %% of the peak\n",
                variants[i].name, total.flops / total.seconds[i] / 1e9,
                total.seconds[0] / total.seconds[i],
                100 * total.flops / total.peakFlops * total.seconds[0] / total.seconds[i]);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : rt::availableProcessors();
  int code = 1;
  auto status = rt::runOnKernelStack([&] {
    code = measure(threads, argc > 2 ? argv[2] : "", argc > 3 ? std::atoi(argv[3]) : 1024);
  });
  return status.ok() ? code : int(status.code());
}

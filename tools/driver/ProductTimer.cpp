// See ProductTimer.h.
#include "tools/driver/ProductTimer.h"
#include "codegen/cpu/LoadedKernel.h"
#include "runtime/cpu/Arena.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/GemmWorkspace.h"
#include "runtime/cpu/ThreadPool.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace gradc {
namespace {

constexpr double secondsOfRuns = 0.2;
constexpr size_t leastRuns = 3, mostRuns = 1000;

double secondsOf(llvm::function_ref<void()> work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The product as the library is given it.
GradcGemm descriptorOf(const codegen::GemmSpec &spec) {
  auto matrix = [](const codegen::GemmSpec::Matrix &x) {
    GradcMatrix result{};
    result.rowStride = x.rowStride;
    result.columnStride = x.columnStride;
    result.batchStride[1] = x.batchStride;
    return result;
  };
  GradcGemm gemm{};
  gemm.name = "timed";
  gemm.m = spec.m, gemm.n = spec.n, gemm.k = spec.k;
  gemm.batch[0] = 1, gemm.batch[1] = spec.batch;
  gemm.a = matrix(spec.a), gemm.b = matrix(spec.b), gemm.c = matrix(spec.c);
  gemm.accumulate = spec.accumulate;
  gemm.workspaceBytes = spec.batch == 1 ? rt::gemmWorkspaceBytes(spec.m, spec.n, spec.k) : 0;
  return gemm;
}

/// One product's matrices, all zero, and both ways to multiply them.
class Product {
public:
  Product(const codegen::GemmSpec &spec, GradcKernelFn kernel, rt::ThreadPool &pool)
      : spec(spec), kernel(kernel), pool(pool), engine(pool), gemm(descriptorOf(spec)) {}

  rt::Status allocate() {
    constexpr uint64_t cacheLine = 64;
    auto place = [](int64_t bytes) {
      return static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(bytes), cacheLine));
    };
    int64_t a = place(gemm.workspaceBytes);
    int64_t b = a + place(4 * spec.batch * spec.m * spec.k);
    int64_t c = b + place(4 * spec.batch * spec.k * spec.n);
    int64_t end = c + place(4 * spec.batch * spec.m * spec.n);
    GRADC_ASSIGN_OR_RETURN(arena, rt::Arena::create(end, "the matrices of a timed product", pool));
    matrices[0] = arena.data() + a;
    matrices[1] = arena.data() + b;
    matrices[2] = arena.data() + c;
    return {};
  }

  void runGenerated() {
    pool.parallelFor(codegen::gemmTaskCount(spec),
                     [&](int64_t task, int) { kernel(matrices, spec.m, task); });
  }

  rt::Status runLibrary() {
    auto at = [&](int i) { return static_cast<float *>(matrices[i]); };
    return engine.run(gemm, at(0), at(1), at(2), arena.data());
  }

private:
  codegen::GemmSpec spec;
  GradcKernelFn kernel;
  rt::ThreadPool &pool;
  rt::GemmEngine engine;
  GradcGemm gemm;
  rt::Arena arena;
  void *matrices[3] = {};
};

rt::Expected<ProductSeconds> timeBoth(Product &product) {
  // The first runs prepare: the library its plan, both their pages and caches.
  GRADC_RETURN_IF_ERROR(product.runLibrary());
  product.runGenerated();
  rt::Status status;
  std::vector<double> generated, library;
  for (double total = 0;
       generated.size() < leastRuns || (total < secondsOfRuns && generated.size() < mostRuns);
       total += generated.back() + library.back()) {
    generated.push_back(secondsOf([&] { product.runGenerated(); }));
    library.push_back(secondsOf([&] { status = product.runLibrary(); }));
    GRADC_RETURN_IF_ERROR(status);
  }
  return ProductSeconds{median(std::move(generated)), median(std::move(library))};
}

rt::Expected<ProductSeconds> timeKernel(const codegen::GemmSpec &spec, GradcKernelFn kernel,
                                        int threads) {
  GRADC_ASSIGN_OR_RETURN(std::unique_ptr<rt::ThreadPool> pool, rt::ThreadPool::create(threads));
  Product product(spec, kernel, *pool);
  GRADC_RETURN_IF_ERROR(product.allocate());
  rt::Expected<ProductSeconds> seconds{ProductSeconds{}};
  GRADC_RETURN_IF_ERROR(rt::runOnKernelStack([&] { seconds = timeBoth(product); }));
  return seconds;
}

} // namespace

llvm::Expected<ProductSeconds> timeProduct(const codegen::GemmSpec &spec,
                                           const codegen::CpuTarget &target, int threads) {
  auto kernel = codegen::LoadedKernel::compile(
      target, [&](mlir::OpBuilder &, mlir::ModuleOp module, llvm::StringRef name) {
        codegen::emitGemm(module, name, spec, target);
      });
  if (!kernel)
    return kernel.takeError();
  rt::Expected<ProductSeconds> seconds = timeKernel(spec, kernel->function(), threads);
  if (!seconds)
    return llvm::createStringError(seconds.status().message());
  return *seconds;
}

} // namespace gradc

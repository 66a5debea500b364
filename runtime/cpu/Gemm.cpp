// GemmEngine: a plan a distinct product, kept in a table, and its execution on the pool.
#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "runtime/cpu/GemmPlan.h"
#include "runtime/cpu/ThreadPool.h"

extern "C" void omp_set_num_threads(int threads); // of libgomp, which libdnnl is linked with

namespace gradc::rt {
namespace {

/// Makes oneDNN single threaded on the calling thread, once for each thread.
void useOneThreadHere() {
  static thread_local const bool done = (omp_set_num_threads(1), true);
  (void)done;
}

struct PlanKey {
  GemmProblem problem;
  int64_t workspaceBytes;
  bool operator==(const PlanKey &) const = default;
};

struct PlanKeyHash {
  std::size_t operator()(const PlanKey &key) const {
    std::size_t hash = 0;
    auto add = [&](int64_t value) { hash = (hash ^ std::size_t(value)) * 0x9E3779B97F4A7C15; };
    const GemmProblem &p = key.problem;
    for (int64_t value : {p.m, p.n, p.k, p.batch[0], p.batch[1], key.workspaceBytes,
                          int64_t(p.accumulate), int64_t(p.swapped)})
      add(value);
    for (const auto &operand : {p.a, p.b, p.c})
      for (int64_t value : {operand.rowStride, operand.columnStride, operand.batchStride[0],
                            operand.batchStride[1]})
        add(value);
    return hash;
  }
};

struct FreeDeleter {
  void operator()(std::byte *memory) const { std::free(memory); }
};

} // namespace

struct GemmEngine::Implementation {
  Implementation(ThreadPool &pool, GemmPacking packing)
      : pool(pool), planner(engine, pool.threads(), packing) {
    useOneThreadHere();
    for (int thread = 0; thread < pool.threads(); ++thread)
      streams.emplace_back(engine);
    scratchpads.resize(pool.threads());
  }

  ThreadPool &pool;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  GemmPlanner planner;
  std::vector<dnnl::stream> streams;
  std::size_t allocatedBytes = 0;
  std::vector<std::unique_ptr<std::byte, FreeDeleter>> scratchpads;
  std::unordered_map<PlanKey, std::unique_ptr<GemmPlan>, PlanKeyHash> plans;

  Expected<GemmPlan *> planFor(const GradcGemm &gemm);
  bool growScratchpads();
  bool execute(GemmPlan &plan, const float *a, const float *b, float *c, std::byte *workspace);
};

namespace {

Status defectOf(const GradcGemm &gemm, const std::string &why) {
  return Status::defect(fmt::format("matrix product {} ({} x {} x {}): {}; please report this",
                                    gemm.name ? gemm.name : "?", gemm.m, gemm.n, gemm.k, why));
}

} // namespace

Expected<GemmPlan *> GemmEngine::Implementation::planFor(const GradcGemm &gemm) {
  PlanKey key{normalise(gemm), gemm.workspaceBytes};
  if (auto found = plans.find(key); found != plans.end())
    return found->second.get();

  const GemmProblem &problem = key.problem;
  for (const auto &operand : {problem.a, problem.b, problem.c})
    if (operand.rowStride != 1 && operand.columnStride != 1)
      return defectOf(gemm, "no stride of an operand is 1");
  for (int i = 0; i < 2; ++i)
    if (problem.batch[i] > 1 && problem.c.batchStride[i] == 0)
      return defectOf(gemm, "the results of a batch would overlap");

  std::unique_ptr<GemmPlan> plan;
  try {
    plan = planner.prepare(problem, gemm.workspaceBytes);
  } catch (const dnnl::error &error) {
    return defectOf(gemm, fmt::format("oneDNN refused it ({})", error.what()));
  }
  if (!growScratchpads())
    return Status::machine("out of memory for the scratchpads of the matrix products; free memory");
  return plans.emplace(key, std::move(plan)).first->second.get();
}

bool GemmEngine::Implementation::growScratchpads() {
  if (planner.scratchpadBytes() <= allocatedBytes)
    return true;
  allocatedBytes = (planner.scratchpadBytes() + cacheLine - 1) / cacheLine * cacheLine;
  for (auto &scratchpad : scratchpads) {
    scratchpad.reset();
    scratchpad.reset(static_cast<std::byte *>(std::aligned_alloc(cacheLine, allocatedBytes)));
    if (!scratchpad)
      return false;
  }
  return true;
}

bool GemmEngine::Implementation::execute(GemmPlan &plan, const float *a, const float *b, float *c,
                                         std::byte *workspace) {
  const GemmProblem &p = plan.problem;
  const GemmTiling &t = plan.tiling;
  std::atomic<bool> ok{true};
  auto address = [](const float *base, int64_t elements) {
    return const_cast<float *>(base) + elements;
  };
  for (int64_t panel = 0; panel < t.columnSlices; panel += t.panelSlices) {
    int64_t slices = std::min(t.panelSlices, t.columnSlices - panel);
    if (plan.packed)
      pool.parallelFor(slices, [&](int64_t slice, int worker) {
        useOneThreadHere();
        int64_t column = panel + slice;
        if (!plan.packs[column + 1 == t.columnSlices].execute(
                worker, streams[worker],
                {address(b, column * t.sliceColumns * p.b.columnStride),
                 workspace + slice * plan.packedSliceBytes, scratchpads[worker].get()}))
          ok = false;
      });

    pool.parallelFor(t.batchTasks * slices * t.rowSlices, [&](int64_t task, int worker) {
      useOneThreadHere();
      int64_t row = task % t.rowSlices;
      int64_t slice = task / t.rowSlices % slices;
      int64_t column = panel + slice;
      int64_t group = task / (t.rowSlices * slices);
      auto &product = plan.products[row + 1 == t.rowSlices][column + 1 == t.columnSlices];
      int64_t end = std::min((group + 1) * t.batchPerTask, p.batch[0] * p.batch[1]);
      for (int64_t element = group * t.batchPerTask; element < end; ++element) {
        int64_t i = element / p.batch[1], j = element % p.batch[1];
        auto offset = [&](const GemmProblem::Operand &operand, int64_t r, int64_t s) {
          return i * operand.batchStride[0] + j * operand.batchStride[1] + r * operand.rowStride +
                 s * operand.columnStride;
        };
        void *right = plan.packed ? static_cast<void *>(workspace + slice * plan.packedSliceBytes)
                                  : address(b, offset(p.b, 0, column * t.sliceColumns));
        if (!product.execute(worker, streams[worker],
                             {address(a, offset(p.a, row * t.sliceRows, 0)), right,
                              address(c, offset(p.c, row * t.sliceRows, column * t.sliceColumns)),
                              scratchpads[worker].get()}))
          ok = false;
      }
    });
  }
  return ok;
}

std::string gemmLibraryVersion() {
  const dnnl_version_t *version = dnnl_version();
  return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

GemmEngine::GemmEngine(ThreadPool &pool, GemmPacking packing)
    : implementation_(std::make_unique<Implementation>(pool, packing)) {}

GemmEngine::~GemmEngine() = default;

Status GemmEngine::run(const GradcGemm &gemm, const float *a, const float *b, float *c,
                       std::byte *workspace) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 1 || gemm.batch[0] < 0 || gemm.batch[1] < 0)
    return defectOf(gemm, "a size is out of range");
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch[0] == 0 || gemm.batch[1] == 0)
    return Status();
  useOneThreadHere();
  GRADC_ASSIGN_OR_RETURN(GemmPlan * plan, implementation_->planFor(gemm));
  bool swapped = plan->problem.swapped;
  if (!implementation_->execute(*plan, swapped ? b : a, swapped ? a : b, c, workspace))
    return defectOf(gemm, "oneDNN failed to execute it");
  return Status();
}

} // namespace gradc::rt

// GemmEngine: a plan a distinct product (oneDNN primitives for its slices, with the memory objects
// that each thread binds to addresses), kept in a table, and its execution on the pool.
#include "runtime/cpu/Gemm.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>
#include <fmt/format.h>

#include "runtime/cpu/GemmTiling.h"
#include "runtime/cpu/GemmWorkspace.h"
#include "runtime/cpu/ThreadPool.h"

extern "C" void omp_set_num_threads(int threads); // of libgomp, which libdnnl is linked with

namespace gradc::rt {
namespace {

using Descriptor = dnnl::memory::desc;
constexpr auto f32 = dnnl::memory::data_type::f32;
constexpr std::size_t cacheLine = 64;

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

/// A primitive with, for each thread, memory objects whose addresses are set before each execution.
class BoundPrimitive {
public:
  BoundPrimitive() = default;
  BoundPrimitive(dnnl::primitive primitive, std::vector<std::pair<int, Descriptor>> arguments,
                 const dnnl::engine &engine, int threads)
      : primitive_(std::move(primitive)) {
    for (int thread = 0; thread < threads; ++thread) {
      auto &memories = memories_.emplace_back();
      auto &bound = arguments_.emplace_back();
      for (auto &[index, descriptor] : arguments) {
        memories.emplace_back(descriptor, engine, nullptr);
        bound.push_back({index, memories.back().get()});
      }
    }
  }

  /// Addresses in the order of the arguments. Returns false when the library reports a failure.
  bool execute(int thread, const dnnl::stream &stream, std::initializer_list<void *> addresses) {
    auto &bound = arguments_[thread];
    std::size_t i = 0;
    for (void *address : addresses)
      if (dnnl_memory_set_data_handle_v2(bound[i++].memory, address, stream.get()) != dnnl_success)
        return false;
    return dnnl_primitive_execute(primitive_.get(), stream.get(), int(bound.size()),
                                  bound.data()) == dnnl_success;
  }

private:
  dnnl::primitive primitive_;
  std::vector<std::vector<dnnl::memory>> memories_;
  std::vector<std::vector<dnnl_exec_arg_t>> arguments_;
};

struct Plan {
  GemmProblem problem;
  GemmTiling tiling;
  bool packed = false;
  int64_t packedSliceBytes = 0;
  // Indexed by whether the slice is the last, shorter one: [row][column] and [column].
  std::array<std::array<BoundPrimitive, 2>, 2> products;
  std::array<BoundPrimitive, 2> packs;
};

/// The part of `size` that the last of `slices` slices has.
int64_t lastSlice(int64_t size, int64_t slice, int64_t slices) {
  return size - slice * (slices - 1);
}

Descriptor descriptor(int64_t rows, int64_t columns, const GemmProblem::Operand &operand) {
  return Descriptor({rows, columns}, f32,
                    dnnl::memory::dims{operand.rowStride, operand.columnStride});
}

struct FreeDeleter {
  void operator()(std::byte *memory) const { std::free(memory); }
};

} // namespace

struct GemmEngine::Implementation {
  Implementation(ThreadPool &pool, GemmPacking packing) : pool(pool), packing(packing) {
    useOneThreadHere();
    for (int thread = 0; thread < pool.threads(); ++thread)
      streams.emplace_back(engine);
    scratchpads.resize(pool.threads());
  }

  ThreadPool &pool;
  GemmPacking packing;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<dnnl::stream> streams;
  std::size_t scratchpadBytes = 0; ///< the most that any plan needs
  std::size_t allocatedBytes = 0;
  std::vector<std::unique_ptr<std::byte, FreeDeleter>> scratchpads;
  std::unordered_map<PlanKey, std::unique_ptr<Plan>, PlanKeyHash> plans;

  Expected<Plan *> planFor(const GradcGemm &gemm);
  void preparePlain(Plan &plan);
  bool preparePacked(Plan &plan, int64_t workspaceBytes);
  dnnl::matmul::primitive_desc product(const Plan &plan, int64_t rows, int64_t columns,
                                       const Descriptor &weights);
  BoundPrimitive bind(const dnnl::matmul::primitive_desc &product);
  bool growScratchpads();
  bool execute(Plan &plan, const float *a, const float *b, float *c, std::byte *workspace);
};

namespace {

Status defectOf(const GradcGemm &gemm, const std::string &why) {
  return Status::defect(fmt::format("matrix product {} ({} x {} x {}): {}; please report this",
                                    gemm.name ? gemm.name : "?", gemm.m, gemm.n, gemm.k, why));
}

} // namespace

Expected<Plan *> GemmEngine::Implementation::planFor(const GradcGemm &gemm) {
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

  auto plan = std::make_unique<Plan>();
  plan->problem = problem;
  try {
    if (!preparePacked(*plan, gemm.workspaceBytes))
      preparePlain(*plan);
  } catch (const dnnl::error &error) {
    return defectOf(gemm, fmt::format("oneDNN refused it ({})", error.what()));
  }
  if (!growScratchpads())
    return Status::machine("out of memory for the scratchpads of the matrix products; free memory");
  return plans.emplace(key, std::move(plan)).first->second.get();
}

dnnl::matmul::primitive_desc GemmEngine::Implementation::product(const Plan &plan, int64_t rows,
                                                                 int64_t columns,
                                                                 const Descriptor &weights) {
  const GemmProblem &problem = plan.problem;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (problem.accumulate) {
    dnnl::post_ops operations;
    operations.append_sum(1.0f);
    attributes.set_post_ops(operations);
  }
  dnnl::matmul::desc operation(descriptor(rows, problem.k, problem.a), weights,
                               descriptor(rows, columns, problem.c));
  dnnl::matmul::primitive_desc result(operation, attributes, engine);
  scratchpadBytes = std::max(scratchpadBytes, result.scratchpad_desc().get_size());
  return result;
}

BoundPrimitive GemmEngine::Implementation::bind(const dnnl::matmul::primitive_desc &product) {
  return BoundPrimitive(dnnl::matmul(product),
                        {{DNNL_ARG_SRC, product.src_desc()},
                         {DNNL_ARG_WEIGHTS, product.weights_desc()},
                         {DNNL_ARG_DST, product.dst_desc()},
                         {DNNL_ARG_SCRATCHPAD, product.scratchpad_desc()}},
                        engine, pool.threads());
}

void GemmEngine::Implementation::preparePlain(Plan &plan) {
  const GemmProblem &problem = plan.problem;
  plan.tiling = tile(problem);
  plan.packed = false;
  const GemmTiling &t = plan.tiling;
  int64_t rows[2] = {t.sliceRows, lastSlice(problem.m, t.sliceRows, t.rowSlices)};
  int64_t columns[2] = {t.sliceColumns, lastSlice(problem.n, t.sliceColumns, t.columnSlices)};
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 2; ++column)
      plan.products[row][column] = bind(product(plan, rows[row], columns[column],
                                                descriptor(problem.k, columns[column], problem.b)));
}

/// False when packing does not apply or the library likes the plain layout best.
bool GemmEngine::Implementation::preparePacked(Plan &plan, int64_t workspaceBytes) {
  const GemmProblem &problem = plan.problem;
  if (!tilePacked(problem, workspaceBytes, plan.tiling))
    return false;
  const GemmTiling &t = plan.tiling;
  int64_t rows[2] = {t.sliceRows, lastSlice(problem.m, t.sliceRows, t.rowSlices)};
  int64_t columns[2] = {t.sliceColumns, lastSlice(problem.n, t.sliceColumns, t.columnSlices)};
  for (int column = 0; column < 2; ++column) {
    dnnl::memory::dims sizes{problem.k, columns[column]};
    Descriptor plain = descriptor(problem.k, columns[column], problem.b);
    bool forced = packing == GemmPacking::always;
    Descriptor wanted(sizes, f32,
                      forced ? dnnl::memory::format_tag::BA16a64b : dnnl::memory::format_tag::any);
    auto full = product(plan, rows[0], columns[column], wanted);
    Descriptor chosen = full.weights_desc();
    if (chosen == plain || chosen == Descriptor(sizes, f32, dnnl::memory::format_tag::ab) ||
        chosen == Descriptor(sizes, f32, dnnl::memory::format_tag::ba))
      return false;
    if (column == 0)
      plan.packedSliceBytes = (int64_t(chosen.get_size()) + cacheLine - 1) / cacheLine * cacheLine;
    if (int64_t(chosen.get_size()) > plan.packedSliceBytes ||
        plan.packedSliceBytes * t.panelSlices > workspaceBytes)
      return false;
    plan.products[0][column] = bind(full);
    plan.products[1][column] = bind(product(plan, rows[1], columns[column], chosen));

    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::reorder::primitive_desc reorder(engine, plain, engine, chosen, attributes);
    scratchpadBytes = std::max(scratchpadBytes, reorder.scratchpad_desc().get_size());
    plan.packs[column] = BoundPrimitive(dnnl::reorder(reorder),
                                        {{DNNL_ARG_FROM, plain},
                                         {DNNL_ARG_TO, chosen},
                                         {DNNL_ARG_SCRATCHPAD, reorder.scratchpad_desc()}},
                                        engine, pool.threads());
  }
  plan.packed = true;
  return true;
}

bool GemmEngine::Implementation::growScratchpads() {
  if (scratchpadBytes <= allocatedBytes)
    return true;
  allocatedBytes = (scratchpadBytes + cacheLine - 1) / cacheLine * cacheLine;
  for (auto &scratchpad : scratchpads) {
    scratchpad.reset();
    scratchpad.reset(static_cast<std::byte *>(std::aligned_alloc(cacheLine, allocatedBytes)));
    if (!scratchpad)
      return false;
  }
  return true;
}

bool GemmEngine::Implementation::execute(Plan &plan, const float *a, const float *b, float *c,
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
  GRADC_ASSIGN_OR_RETURN(Plan * plan, implementation_->planFor(gemm));
  bool swapped = plan->problem.swapped;
  if (!implementation_->execute(*plan, swapped ? b : a, swapped ? a : b, c, workspace))
    return defectOf(gemm, "oneDNN failed to execute it");
  return Status();
}

} // namespace gradc::rt

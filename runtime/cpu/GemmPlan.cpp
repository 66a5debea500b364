// See GemmPlan.h.
#include "runtime/cpu/GemmPlan.h"

#include <algorithm>

namespace gradc::rt {
namespace {

using Descriptor = dnnl::memory::desc;
constexpr auto f32 = dnnl::memory::data_type::f32;

/// The part of `size` that the last of `slices` slices has.
int64_t lastSlice(int64_t size, int64_t slice, int64_t slices) {
  return size - slice * (slices - 1);
}

Descriptor descriptor(int64_t rows, int64_t columns, const GemmProblem::Operand &operand) {
  return Descriptor({rows, columns}, f32,
                    dnnl::memory::dims{operand.rowStride, operand.columnStride});
}

} // namespace

std::unique_ptr<GemmPlan> GemmPlanner::prepare(const GemmProblem &problem, int64_t workspaceBytes) {
  auto plan = std::make_unique<GemmPlan>();
  plan->problem = problem;
  if (!preparePacked(*plan, workspaceBytes))
    preparePlain(*plan);
  return plan;
}

dnnl::matmul::primitive_desc GemmPlanner::product(const GemmPlan &plan, int64_t rows,
                                                  int64_t columns, const Descriptor &weights) {
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
  dnnl::matmul::primitive_desc result(operation, attributes, engine_);
  scratchpadBytes_ = std::max(scratchpadBytes_, result.scratchpad_desc().get_size());
  return result;
}

BoundPrimitive GemmPlanner::bind(const dnnl::matmul::primitive_desc &product) {
  return BoundPrimitive(dnnl::matmul(product),
                        {{DNNL_ARG_SRC, product.src_desc()},
                         {DNNL_ARG_WEIGHTS, product.weights_desc()},
                         {DNNL_ARG_DST, product.dst_desc()},
                         {DNNL_ARG_SCRATCHPAD, product.scratchpad_desc()}},
                        engine_, threads_);
}

void GemmPlanner::preparePlain(GemmPlan &plan) {
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
bool GemmPlanner::preparePacked(GemmPlan &plan, int64_t workspaceBytes) {
  const GemmProblem &problem = plan.problem;
  if (!tilePacked(problem, workspaceBytes, plan.tiling))
    return false;
  const GemmTiling &t = plan.tiling;
  int64_t rows[2] = {t.sliceRows, lastSlice(problem.m, t.sliceRows, t.rowSlices)};
  int64_t columns[2] = {t.sliceColumns, lastSlice(problem.n, t.sliceColumns, t.columnSlices)};
  for (int column = 0; column < 2; ++column) {
    dnnl::memory::dims sizes{problem.k, columns[column]};
    Descriptor plain = descriptor(problem.k, columns[column], problem.b);
    bool forced = packing_ == GemmPacking::always;
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
    plan.packs[column] = pack(plain, chosen);
  }
  plan.packed = true;
  return true;
}

BoundPrimitive GemmPlanner::pack(const Descriptor &plain, const Descriptor &packed) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::reorder::primitive_desc reorder(engine_, plain, engine_, packed, attributes);
  scratchpadBytes_ = std::max(scratchpadBytes_, reorder.scratchpad_desc().get_size());
  return BoundPrimitive(dnnl::reorder(reorder),
                        {{DNNL_ARG_FROM, plain},
                         {DNNL_ARG_TO, packed},
                         {DNNL_ARG_SCRATCHPAD, reorder.scratchpad_desc()}},
                        engine_, threads_);
}

} // namespace gradc::rt

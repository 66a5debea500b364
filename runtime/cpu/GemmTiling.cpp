// The cut of a product into tasks: as few as keep many threads busy, since each repeats the
// library's own copying of operands into cache-sized blocks.
#include "runtime/cpu/GemmTiling.h"

#include <algorithm>
#include <utility>

#include "runtime/cpu/GemmWorkspace.h"

namespace gradc::rt {
namespace {

constexpr double taskFlops = 400e6;   // a few milliseconds of one thread
constexpr double smallestSplit = 4e6; // below this one thread is as fast as two
constexpr int64_t mostTasks = 64;
constexpr int64_t packedColumnSlices = 8; // a panel: packed by eight tasks, multiplied by sixteen
constexpr int64_t packedRowSlices = 2;
constexpr int64_t sliceMultiple = 64; // whole cache lines and register tiles of any vector length

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// `size` cut into about `slices` parts of a size that is a multiple of sliceMultiple.
int64_t sliceSize(int64_t size, int64_t slices) {
  return std::min(size, ceilDiv(ceilDiv(size, slices), sliceMultiple) * sliceMultiple);
}

/// Whether a slice is large enough for the library to copy its operands into packed blocks; below
/// that it works on them in place, at half the speed where rows lie multiples of 4 KB apart.
bool isWorthCopying(int64_t rows, int64_t columns) {
  return 1.0 / double(rows) + 1.0 / double(columns) < 0.0036;
}

/// The size of slices when `size` is cut into at most `most` parts, whose other extent is `other`:
/// as many as stay worth copying and can be shared evenly by two threads, and two where none is.
int64_t bestSlice(int64_t size, int64_t other, int64_t most) {
  int64_t slices = most;
  auto isGood = [&] {
    int64_t slice = sliceSize(size, slices);
    return isWorthCopying(slice, other) && ceilDiv(size, slice) % 2 == 0;
  };
  while (slices > 2 && !isGood())
    --slices;
  return sliceSize(size, slices);
}

/// Strides of dimensions of one element are free: give them the value that reads best.
GemmProblem::Operand operand(const GradcMatrix &matrix, int64_t rows, int64_t columns) {
  GemmProblem::Operand result{
      matrix.rowStride, matrix.columnStride, {matrix.batchStride[0], matrix.batchStride[1]}};
  if (columns == 1 && (rows == 1 || result.rowStride != 1))
    result.columnStride = 1;
  if (rows == 1 && result.columnStride != 1)
    result.rowStride = 1;
  if (rows == 1 && result.columnStride == 1)
    result.rowStride = columns;
  if (columns == 1 && result.rowStride == 1)
    result.columnStride = rows;
  return result;
}

GemmProblem::Operand transposed(GemmProblem::Operand operand) {
  std::swap(operand.rowStride, operand.columnStride);
  return operand;
}

} // namespace

GemmProblem normalise(const GradcGemm &gemm) {
  GemmProblem problem{gemm.m,
                      gemm.n,
                      gemm.k,
                      {gemm.batch[0], gemm.batch[1]},
                      operand(gemm.a, gemm.m, gemm.k),
                      operand(gemm.b, gemm.k, gemm.n),
                      operand(gemm.c, gemm.m, gemm.n),
                      gemm.accumulate != 0,
                      false};
  if (problem.c.columnStride == 1)
    return problem;
  problem.swapped = true;
  std::swap(problem.m, problem.n);
  std::swap(problem.a, problem.b);
  problem.a = transposed(problem.a);
  problem.b = transposed(problem.b);
  problem.c = transposed(problem.c);
  return problem;
}

GemmTiling tile(const GemmProblem &problem) {
  int64_t batch = problem.batch[0] * problem.batch[1];
  double flops = 2.0 * double(problem.m) * double(problem.n) * double(problem.k);
  double total = flops * double(batch);

  int64_t wanted = 1;
  if (total >= smallestSplit)
    wanted = std::clamp<int64_t>(int64_t(total / taskFlops), 4, mostTasks);

  GemmTiling tiling{problem.m, problem.n, 1, 1, 1, batch, 1};
  if (batch >= wanted) {
    // Whole matrices a task; many more tasks than wanted would only cost hand-outs.
    tiling.batchPerTask = std::max<int64_t>(1, batch / (2 * wanted));
    tiling.batchTasks = ceilDiv(batch, tiling.batchPerTask);
    return tiling;
  }
  int64_t pieces = ceilDiv(wanted, batch);
  if (problem.n >= problem.m)
    tiling.sliceColumns = bestSlice(problem.n, problem.m, pieces);
  else
    tiling.sliceRows = bestSlice(problem.m, problem.n, pieces);
  tiling.rowSlices = ceilDiv(problem.m, tiling.sliceRows);
  tiling.columnSlices = tiling.panelSlices = ceilDiv(problem.n, tiling.sliceColumns);
  return tiling;
}

bool tilePacked(const GemmProblem &problem, int64_t workspaceBytes, GemmTiling &tiling) {
  if (problem.batch[0] * problem.batch[1] != 1 || !gemmPackingPays(problem.m, problem.n, problem.k))
    return false;
  int64_t columnBytes = ceilDiv(problem.k, gemmPackBlock) * gemmPackBlock * int64_t(sizeof(float));
  int64_t fitting = workspaceBytes / columnBytes / gemmPackBlock * gemmPackBlock;
  if (fitting <= 0)
    return false;
  int64_t panels = ceilDiv(problem.n, fitting);
  tiling.sliceColumns = sliceSize(ceilDiv(problem.n, panels), packedColumnSlices);
  tiling.panelSlices = fitting / tiling.sliceColumns;
  tiling.columnSlices = ceilDiv(problem.n, tiling.sliceColumns);
  tiling.panelSlices = std::min(tiling.panelSlices, tiling.columnSlices);
  tiling.sliceRows = sliceSize(problem.m, packedRowSlices);
  tiling.rowSlices = ceilDiv(problem.m, tiling.sliceRows);
  tiling.batchPerTask = tiling.batchTasks = 1;
  return true;
}

} // namespace gradc::rt

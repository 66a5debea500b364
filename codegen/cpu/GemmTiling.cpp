// See GemmTiling.h.
#include "codegen/cpu/GemmTiling.h"
#include "codegen/cpu/GemmThin.h"
#include "codegen/kernels/CeilDiv.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <iterator>

namespace gradc::codegen {

namespace {

/// Whole register tiles of every target: 4 x 24 and 6 x 64.
constexpr int64_t rowUnit = 12, columnUnit = 192;

/// A panel of B of this depth takes three quarters of a first cache of 32 KiB with 24 columns.
constexpr int64_t mostDepth = 256;
/// Rows of A that fill, twice, two thirds of a second cache of 512 KiB at that depth.
constexpr int64_t mostBlockRows = 168;
/// Bounds the packed B, which lies on the stack.
constexpr int64_t mostColumns = 768;
/// Bounds the sums that a task holds on the stack: with both packed operands under 2 MiB.
constexpr int64_t mostHeldSums = 224 * 1024;

/// Tasks are as many as keep the threads busy and, of a large C, as are of this size, up to some
/// a thread; none is worth less work than this. Some threads are always thought of: one task each
/// for two would pack less, but a thread that is held up would hold up the other.
constexpr int64_t leastThreads = 8;
constexpr double mostTasksOfThread = 8;
constexpr double taskElements = 512 * 576, leastTaskFlops = 2e6;

int64_t wantedTasks(const GemmSpec &spec) {
  double elements = double(spec.m) * double(spec.n) * double(spec.batch);
  double useful = std::max(1.0, 2.0 * elements * double(spec.k) / leastTaskFlops);
  auto threads = static_cast<double>(std::max(spec.threads, leastThreads));
  double wanted = std::clamp(elements / taskElements, threads, mostTasksOfThread * threads);
  return ceilDiv(int64_t(std::min(useful, wanted)), spec.batch);
}

/// Sizes of `parts` even parts.
int64_t partSize(int64_t size, int64_t parts, int64_t unit) {
  return roundUp(ceilDiv(size, parts), unit);
}

} // namespace

std::string verify(const GemmSpec &s) {
  if (s.m < 1 || s.n < 1 || s.k < 1 || s.batch < 1)
    return llvm::formatv("matrix product: expected positive sizes, got: {0} x {1} x {2}, batch {3}",
                         s.m, s.n, s.k, s.batch);
  const GemmSpec::Matrix *matrices[] = {&s.a, &s.b, &s.c};
  for (int i = 0; i < 3; ++i) {
    const GemmSpec::Matrix &x = *matrices[i];
    bool unit = x.columnStride == 1 || (i < 2 && x.rowStride == 1);
    if (!unit || x.rowStride < 0 || x.columnStride < 0 || x.batchStride < 0)
      return llvm::formatv("matrix product: {0} has strides {1}, {2}, {3}; expected one of the "
                           "first two to be 1 (the second for c) and none negative",
                           "abc"[i], x.rowStride, x.columnStride, x.batchStride);
    if (x.dtype == row::Dtype::i32)
      return llvm::formatv("matrix product: {0} is i32; expected f32, bf16 or f16", "abc"[i]);
    bool isFloat8 = row::byteSize(x.dtype) == 1;
    if (i == 2 ? isFloat8 : isFloat8 != s.scaled)
      return llvm::formatv("matrix product: {0} is {1}; expected fp8 for a and b where they are "
                           "scaled, and nowhere else",
                           "abc"[i], row::name(x.dtype));
  }
  if (s.panelsB && (s.batch != 1 || s.scaled || isThin(s)))
    return "matrix product: expected b in panels of one unscaled matrix and for more rows of a "
           "than "
           "are multiplied in its place";
  if (s.accumulate && s.c.dtype != row::Dtype::f32)
    return "matrix product: expected c in f32 where it is added to, so that it is not rounded at "
           "each addition";
  return "";
}

bool holdsSums(const GemmSpec &s) { return s.c.dtype != row::Dtype::f32 && s.k > mostDepth; }

/// What a cut costs, as a share of the product itself.
static double costOf(const GemmTiling &cut, const GemmSpec &spec, int64_t wanted) {
  // Every element of A is packed once for each part of the columns, every element of B for each
  // part of the rows; packing one takes as long as about eight of its products, and reading one
  // that lies in panels as one.
  double ofB = spec.panelsB ? 1.0 : 8.0;
  double cost = ofB / double(cut.rows) + 8.0 / double(cut.columns);
  // Too few tasks cost as much as the threads that stand idle for want of them.
  int64_t tasks = cut.rowParts * cut.columnParts;
  cost += double(std::max<int64_t>(0, wanted - tasks));
  // So do threads that have no task in the last round.
  const int64_t threadCounts[] = {2, 4, std::max(spec.threads, leastThreads)};
  int64_t all = tasks * spec.batch;
  for (int64_t threads : threadCounts)
    cost += (double(roundUp(all, threads)) / double(all) - 1) / std::size(threadCounts);
  return cost;
}

GemmTiling gemmTiling(const GemmSpec &s, int64_t stepsTogether) {
  int64_t wanted = wantedTasks(s);
  GemmTiling best{};
  double bestCost = 0;
  for (int64_t columnParts = ceilDiv(s.n, mostColumns); columnParts <= ceilDiv(s.n, columnUnit);
       ++columnParts)
    for (int64_t rowParts = 1; rowParts <= ceilDiv(s.m, 4 * rowUnit); ++rowParts) {
      if (rowParts * columnParts > 2 * wanted && best.rows != 0)
        break;
      int64_t rows = partSize(s.m, rowParts, rowUnit);
      int64_t columns = partSize(s.n, columnParts, columnUnit);
      if (holdsSums(s) && rows * columns > mostHeldSums)
        continue;
      GemmTiling cut{rows, columns, ceilDiv(s.m, rows), ceilDiv(s.n, columns), 0, 0};
      double cost = costOf(cut, s, wanted);
      if (best.rows == 0 || cost < bestCost) {
        best = cut;
        bestCost = cost;
      }
    }
  best.depth = partSize(s.k, ceilDiv(s.k, mostDepth * stepsTogether), 16 * stepsTogether);
  best.blockRows = partSize(best.rows, ceilDiv(best.rows, mostBlockRows), rowUnit);
  return best;
}

int64_t gemmTaskCount(const GemmSpec &spec) {
  if (isThin(spec))
    return spec.batch * ceilDiv(spec.n, thinColumns(spec));
  GemmTiling tiling = gemmTiling(spec);
  return spec.batch * tiling.rowParts * tiling.columnParts;
}

} // namespace gradc::codegen

// See GemmTiling.h.
#include "codegen/cpu/GemmTiling.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstdlib>

namespace gradc::codegen {

namespace {

int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }
int64_t roundUp(int64_t x, int64_t to) { return ceilDiv(x, to) * to; }

int64_t knob(const char *name, int64_t d) { const char *v = getenv(name); return v ? atoll(v) : d; }

/// Whole register tiles of every target.
constexpr int64_t rowUnit = 6, columnUnit = 64;

/// A panel of B of this depth takes half of a first cache of 32 KiB with 16 columns.
const int64_t mostDepth = knob("KC", 256);
/// Rows of A that fill half of a second cache of 512 KiB at that depth.
const int64_t mostBlockRows = knob("MC", 240);
/// Bounds the packed B, which lies on the stack.
const int64_t mostColumns = knob("NC", 768);

/// A task is not worth less than this, nor more tasks than that.
constexpr double leastTaskFlops = 2e6;
const double taskFlops = double(knob("TF", 200)) * 1e6;
const int64_t enoughTasks = knob("ET", 8);
constexpr int64_t mostTasks = 64;

int64_t wantedTasks(const GemmSpec &spec) {
  double flops = 2.0 * double(spec.m) * double(spec.n) * double(spec.k);
  double total = flops * double(spec.batch);
  int64_t useful = std::max<int64_t>(1, int64_t(std::min(total / leastTaskFlops, 1e6)));
  int64_t large = std::min(int64_t(std::min(total / taskFlops, 1e6)), mostTasks);
  return ceilDiv(std::min(useful, std::max(enoughTasks, large)), spec.batch);
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
  }
  return "";
}

/// Every element of A is packed once for each part of the columns, every element of B for each part
/// of the rows: of the cuts into enough tasks, that which packs least.
GemmTiling gemmTiling(const GemmSpec &s) {
  int64_t wanted = wantedTasks(s);
  int64_t mostRowParts = ceilDiv(s.m, 8 * rowUnit), mostColumnParts = ceilDiv(s.n, columnUnit);
  int64_t leastColumnParts = ceilDiv(s.n, mostColumns);
  GemmTiling best{};
  double bestCost = 0;
  for (int64_t rowParts = 1; rowParts <= std::min(mostRowParts, wanted); ++rowParts) {
    int64_t columnParts = std::clamp(ceilDiv(wanted, rowParts), leastColumnParts, mostColumnParts);
    int64_t rows = partSize(s.m, rowParts, rowUnit);
    int64_t columns = partSize(s.n, columnParts, columnUnit);
    int64_t tasks = ceilDiv(s.m, rows) * ceilDiv(s.n, columns);
    double cost = 1.0 / double(rows) + 1.0 / double(columns);
    // Too few tasks cost as much as the threads that would stand idle.
    if (tasks < wanted)
      cost += double(wanted - tasks);
    if (best.rows == 0 || cost < bestCost) {
      best = {rows, columns, ceilDiv(s.m, rows), ceilDiv(s.n, columns), 0, 0};
      bestCost = cost;
    }
  }
  best.depth = partSize(s.k, ceilDiv(s.k, mostDepth), 16);
  best.blockRows = partSize(best.rows, ceilDiv(best.rows, mostBlockRows), rowUnit);
  return best;
}

int64_t gemmTaskCount(const GemmSpec &spec) {
  GemmTiling tiling = gemmTiling(spec);
  return spec.batch * tiling.rowParts * tiling.columnParts;
}

} // namespace gradc::codegen

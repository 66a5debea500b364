// See GemmReference.h.
#include "tests/cuda/GemmReference.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "runtime/Epilogue.h"
#include "runtime/emulator/Elements.h"

namespace gradc::rt {
namespace {

using emulator::bytesOf;
using emulator::load;

constexpr int64_t gap = 8, bufferAlignment = 64;
constexpr int64_t workspaceBytes = 64 << 10;

/// Encodes to any type; `store` has those of results only.
void put(std::byte *memory, int64_t type, int64_t index, float value) {
  if (type == GRADC_F8E4M3)
    reinterpret_cast<uint8_t *>(memory)[index] = emulator::toE4m3(value);
  else if (type == GRADC_F8E5M2)
    reinterpret_cast<uint8_t *>(memory)[index] = emulator::toE5m2(value);
  else
    emulator::store(memory, type, index, value);
}

double gelu(double x) {
  double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3));
  return 0.5 * x * (1 + std::tanh(inner));
}
double geluSlope(double x) { // by differences, so that no formula is written twice
  constexpr double step = 1e-5;
  return (gelu(x + step) - gelu(x - step)) / (2 * step);
}

/// What rounding once to the type may be off by, of a value that was computed in f32 from sums
/// whose terms add up to `magnitude`.
double bound(int64_t type, double value, double magnitude) {
  double unit = type == GRADC_BF16 ? 0x1p-8 : type == GRADC_F16 ? 0x1p-11 : 0x1p-23;
  return unit * std::fabs(value) + 0x1p-20 * magnitude + 1e-7;
}

} // namespace

std::byte *GemmOperandsOnHost::place(std::vector<std::byte> &memory) {
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (bufferAlignment - address % bufferAlignment) % bufferAlignment;
}
const std::byte *GemmOperandsOnHost::place(const std::vector<std::byte> &memory) {
  return place(const_cast<std::vector<std::byte> &>(memory));
}

void GemmOperandsOnHost::fill(std::vector<std::byte> &memory, int64_t type, int64_t elements,
                              double range) {
  memory.resize(size_t(elements * bytesOf(type) + bufferAlignment));
  for (int64_t i = 0; i < elements; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    put(place(memory), type, i, float(range * (double(state >> 40) * 0x1p-23 - 1)));
  }
}

GradcMatrix GemmOperandsOnHost::lay(std::vector<std::byte> &memory, int64_t type, int64_t rows,
                                    int64_t columns, bool transposed, double range) {
  int64_t inner = transposed ? rows : columns, outer = transposed ? columns : rows;
  int64_t stride = bytesOf(type) == 1 ? inner : inner + gap, size = outer * stride;
  int64_t elements = size * asked.batch[0] * asked.batch[1];
  fill(memory, type, elements, range);
  GradcMatrix matrix{};
  matrix.buffer.bytes = elements * bytesOf(type);
  matrix.rowStride = transposed ? 1 : stride;
  matrix.columnStride = transposed ? stride : 1;
  matrix.batchStride[0] = asked.interleaved ? size : size * asked.batch[1];
  matrix.batchStride[1] = asked.interleaved ? size * asked.batch[0] : size;
  matrix.type = type;
  return matrix;
}

GemmOperandsOnHost::GemmOperandsOnHost(const GemmCase &gemm) : asked(gemm) {
  descriptor.name = "case";
  descriptor.m = gemm.m, descriptor.n = gemm.n, descriptor.k = gemm.k;
  std::copy(gemm.batch, gemm.batch + 2, descriptor.batch);
  descriptor.a = lay(memoryA, gemm.typeA, gemm.m, gemm.k, gemm.transposeA, 1);
  descriptor.b = lay(memoryB, gemm.typeB, gemm.k, gemm.n, gemm.transposeB, 1);
  descriptor.c = lay(memoryC, gemm.typeC, gemm.m, gemm.n, false, 1);
  descriptor.accumulate = gemm.accumulate;
  descriptor.tf32 = gemm.tf32;
  descriptor.scaled = gemm.scaled;
  descriptor.epilogue = gemm.epilogue;
  descriptor.biasType = gemm.typeC;
  int64_t biases = biasLength(descriptor);
  fill(memoryBias, gemm.typeC, biases, 1);
  descriptor.bias.bytes = biases * bytesOf(gemm.typeC);
  descriptor.auxStride = gemm.n + gap;
  fill(memoryAux, gemm.typeC, gemm.m * descriptor.auxStride, 3);
  descriptor.aux.bytes = gemm.m * descriptor.auxStride * bytesOf(gemm.typeC);
  memoryWorkspace.resize(workspaceBytes + bufferAlignment);
  descriptor.workspaceBytes = workspaceBytes;
  before.assign(c(), c() + descriptor.c.buffer.bytes);
  expected = reference();
}

double GemmOperandsOnHost::at(const std::vector<std::byte> &memory, const GradcMatrix &matrix,
                              int64_t batch0, int64_t batch1, int64_t row, int64_t column) const {
  int64_t index = batch0 * matrix.batchStride[0] + batch1 * matrix.batchStride[1] +
                  row * matrix.rowStride + column * matrix.columnStride;
  float value = load(place(memory), matrix.type, index);
  return double(asked.tf32 && &matrix != &descriptor.c ? emulator::roundToTf32(value) : value);
}

GemmOperandsOnHost::Expected GemmOperandsOnHost::reference() const {
  const GradcGemm &g = descriptor;
  EpilogueParts parts = partsOf(g.epilogue);
  Expected out;
  out.bias.resize(size_t(biasLength(g)));
  double scale = g.scaled ? double(scales[0]) * double(scales[1]) : 1;
  for (int64_t i = 0; i < g.batch[0]; ++i)
    for (int64_t j = 0; j < g.batch[1]; ++j)
      for (int64_t row = 0; row < g.m; ++row)
        for (int64_t column = 0; column < g.n; ++column) {
          double x = 0;
          for (int64_t p = 0; p < g.k; ++p)
            x += at(memoryA, g.a, i, j, row, p) * at(memoryB, g.b, i, j, p, column);
          x *= scale;
          if (g.accumulate)
            x += at(memoryC, g.c, i, j, row, column);
          if (parts.addsBias)
            x += double(load(place(memoryBias), g.biasType, column));
          double kept = double(load(place(memoryAux), g.c.type, row * g.auxStride + column));
          out.aux.push_back(x);
          if (parts.gelu)
            x = gelu(x);
          if (parts.dgelu)
            x *= geluSlope(kept);
          if (parts.sumsResult)
            out.bias[size_t(column)] += x;
          out.c.push_back(x);
        }
  for (int64_t p = 0; p < g.k; ++p) {
    for (int64_t row = 0; parts.sumsA && row < g.m; ++row)
      out.bias[size_t(row)] += at(memoryA, g.a, 0, 0, row, p);
    for (int64_t column = 0; parts.sumsB && column < g.n; ++column)
      out.bias[size_t(column)] += at(memoryB, g.b, 0, 0, p, column);
  }
  return out;
}

void GemmOperandsOnHost::expectReference() const {
  const GradcGemm &g = descriptor;
  EpilogueParts parts = partsOf(g.epilogue);
  std::vector<std::byte> gaps = before;
  size_t next = 0;
  for (int64_t i = 0; i < g.batch[0]; ++i)
    for (int64_t j = 0; j < g.batch[1]; ++j)
      for (int64_t row = 0; row < g.m; ++row)
        for (int64_t column = 0; column < g.n; ++column, ++next) {
          int64_t index =
              i * g.c.batchStride[0] + j * g.c.batchStride[1] + row * g.c.rowStride + column;
          float value = load(place(memoryC), g.c.type, index);
          emulator::store(gaps.data(), g.c.type, index, value);
          double magnitude = double(g.k) + 1;
          ASSERT_NEAR(value, expected.c[next], bound(g.c.type, expected.c[next], magnitude))
              << "C " << row << ", " << column;
          if (parts.writesAux) {
            ASSERT_NEAR(load(place(memoryAux), g.c.type, row * g.auxStride + column),
                        expected.aux[next], bound(g.c.type, expected.aux[next], magnitude))
                << "aux " << row << ", " << column;
          }
        }
  EXPECT_EQ(std::memcmp(gaps.data(), place(memoryC), gaps.size()), 0);
  for (size_t i = 0; parts.writesBias() && i < expected.bias.size(); ++i)
    ASSERT_NEAR(load(place(memoryBias), g.biasType, int64_t(i)), expected.bias[i],
                bound(g.biasType, expected.bias[i], double(g.m + g.k)))
        << "bias " << i;
}

} // namespace gradc::rt

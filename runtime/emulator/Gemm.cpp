// See Gemm.h.
#include "runtime/emulator/Gemm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "runtime/Epilogue.h"
#include "runtime/emulator/Elements.h"
#include "runtime/emulator/GemmChecks.h"

namespace gradc::rt {
namespace {

using namespace emulator;

/// An operand's rows x columns in f32, row by row.
std::vector<float> read(const GradcMatrix &matrix, const std::byte *from, int64_t first,
                        int64_t rows, int64_t columns, bool tf32) {
  std::vector<float> values(std::size_t(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float value = load(from, matrix.type, first + i * matrix.rowStride + j * matrix.columnStride);
      values[std::size_t(i * columns + j)] = tf32 ? roundToTf32(value) : value;
    }
  return values;
}

int64_t firstOf(const GradcMatrix &matrix, int64_t i, int64_t j) {
  return i * matrix.batchStride[0] + j * matrix.batchStride[1];
}

constexpr double geluScale = 0.7978845608028654; // sqrt(2 / pi)
constexpr double geluCubic = 0.044715;

double geluOf(double x) {
  return 0.5 * x * (1 + std::tanh(geluScale * (x + geluCubic * x * x * x)));
}

double geluSlopeOf(double x) {
  double t = std::tanh(geluScale * (x + geluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * geluScale * (1 + 3 * geluCubic * x * x);
}

/// One product without batches, or one of a batch.
class Product {
public:
  Product(const GradcGemm &gemm, const GemmOperands &operands, int64_t i, int64_t j)
      : gemm(gemm), operands(operands), parts(partsOf(gemm.epilogue)), first(firstOf(gemm.c, i, j)),
        a(read(gemm.a, operands.a, firstOf(gemm.a, i, j), gemm.m, gemm.k, gemm.tf32 != 0)),
        b(read(gemm.b, operands.b, firstOf(gemm.b, i, j), gemm.k, gemm.n, gemm.tf32 != 0)),
        biasSums(std::size_t(parts.writesBias() ? biasLength(gemm) : 0)) {}

  void run() {
    std::vector<double> sums(std::size_t(gemm.n));
    for (int64_t row = 0; row < gemm.m; ++row) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int64_t step = 0; step < gemm.k; ++step) {
        double x = a[std::size_t(row * gemm.k + step)];
        const float *y = b.data() + step * gemm.n;
        for (int64_t column = 0; column < gemm.n; ++column)
          sums[std::size_t(column)] += x * double(y[column]);
      }
      for (int64_t column = 0; column < gemm.n; ++column)
        write(row, column, float(sums[std::size_t(column)] * double(operands.scale)));
    }
    sumOperands();
    for (std::size_t i = 0; i < biasSums.size(); ++i)
      store(operands.bias, gemm.biasType, int64_t(i), float(biasSums[i]));
  }

private:
  void write(int64_t row, int64_t column, float product) {
    int64_t place = first + row * gemm.c.rowStride + column * gemm.c.columnStride;
    if (gemm.accumulate)
      product = load(operands.c, gemm.c.type, place) + product;
    store(operands.c, gemm.c.type, place, epilogue(row, column, product));
  }

  float epilogue(int64_t row, int64_t column, float x) {
    int64_t auxPlace = row * gemm.auxStride + column;
    if (parts.addsBias)
      x += load(operands.bias, gemm.biasType, column);
    if (parts.writesAux)
      store(operands.aux, gemm.c.type, auxPlace, x);
    if (parts.gelu)
      x = float(geluOf(double(x)));
    if (parts.dgelu)
      x = float(double(x) * geluSlopeOf(double(load(operands.aux, gemm.c.type, auxPlace))));
    if (parts.sumsResult)
      biasSums[std::size_t(column)] += double(x);
    return x;
  }

  void sumOperands() {
    for (int64_t step = 0; step < gemm.k; ++step) {
      for (int64_t row = 0; parts.sumsA && row < gemm.m; ++row)
        biasSums[std::size_t(row)] += double(a[std::size_t(row * gemm.k + step)]);
      for (int64_t column = 0; parts.sumsB && column < gemm.n; ++column)
        biasSums[std::size_t(column)] += double(b[std::size_t(step * gemm.n + column)]);
    }
  }

  const GradcGemm &gemm;
  const GemmOperands &operands;
  EpilogueParts parts;
  int64_t first;
  std::vector<float> a, b;
  std::vector<double> biasSums;
};

} // namespace

Status emulateGemm(const GradcGemm &gemm, const GemmOperands &operands) {
  GRADC_RETURN_IF_ERROR(checkGemm(gemm));
  for (int64_t i = 0; i < gemm.batch[0]; ++i)
    for (int64_t j = 0; j < gemm.batch[1]; ++j)
      Product(gemm, operands, i, j).run();
  return Status();
}

} // namespace gradc::rt

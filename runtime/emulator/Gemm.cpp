// See Gemm.h.
#include "runtime/emulator/Gemm.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/emulator/Numbers.h"

namespace gradc::rt {
namespace {

using namespace emulator;

float load(const std::byte *matrix, int64_t type, int64_t index) {
  switch (type) {
  case GRADC_BF16:
    return fromBf16(reinterpret_cast<const uint16_t *>(matrix)[index]);
  case GRADC_F16:
    return fromF16(reinterpret_cast<const uint16_t *>(matrix)[index]);
  case GRADC_F8E4M3:
    return fromE4m3(reinterpret_cast<const uint8_t *>(matrix)[index]);
  case GRADC_F8E5M2:
    return fromE5m2(reinterpret_cast<const uint8_t *>(matrix)[index]);
  default:
    return reinterpret_cast<const float *>(matrix)[index];
  }
}

void store(std::byte *matrix, int64_t type, int64_t index, float value) {
  if (type == GRADC_BF16)
    reinterpret_cast<uint16_t *>(matrix)[index] = toBf16(value);
  else if (type == GRADC_F16)
    reinterpret_cast<uint16_t *>(matrix)[index] = toF16(value);
  else
    reinterpret_cast<float *>(matrix)[index] = value;
}

/// 10 bits of mantissa, to nearest even; what is not finite stays.
float roundToTf32(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (!std::isfinite(value))
    return value;
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~uint32_t(0x1fff));
}

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

int64_t bytesOf(int64_t type) {
  switch (type) {
  case GRADC_F32:
    return 4;
  case GRADC_BF16:
  case GRADC_F16:
    return 2;
  default:
    return 1;
  }
}

/// The elements of a matrix, of all batch elements, must lie within its buffer. Which they are
/// depends on the strides alone: the first and the last place are enough to know.
Status checkBounds(const GradcGemm &gemm, const char *operand, const GradcMatrix &matrix,
                   int64_t rows, int64_t columns) {
  int64_t first = 0, last = 0;
  for (auto [count, stride] :
       {std::pair{rows, matrix.rowStride}, std::pair{columns, matrix.columnStride},
        std::pair{gemm.batch[0], matrix.batchStride[0]},
        std::pair{gemm.batch[1], matrix.batchStride[1]}}) {
    if (count <= 0)
      return {}; // there are none
    int64_t reach = (count - 1) * stride;
    (reach < 0 ? first : last) += reach;
  }
  int64_t size = bytesOf(matrix.type);
  if (first >= 0 && (last + 1) * size <= matrix.buffer.bytes)
    return {};
  return Status::defect(fmt::format("product {}: operand {} reaches from byte {} to {} of a buffer "
                                    "of {} bytes; please report this",
                                    gemm.name, operand, first * size, (last + 1) * size,
                                    matrix.buffer.bytes));
}

int64_t firstOf(const GradcMatrix &matrix, int64_t i, int64_t j) {
  return i * matrix.batchStride[0] + j * matrix.batchStride[1];
}

void multiply(const GradcGemm &gemm, const GemmOperands &operands, int64_t i, int64_t j) {
  std::vector<float> a =
      read(gemm.a, operands.a, firstOf(gemm.a, i, j), gemm.m, gemm.k, gemm.tf32 != 0);
  std::vector<float> b =
      read(gemm.b, operands.b, firstOf(gemm.b, i, j), gemm.k, gemm.n, gemm.tf32 != 0);
  int64_t first = firstOf(gemm.c, i, j);
  std::vector<double> sums(std::size_t(gemm.n));
  for (int64_t row = 0; row < gemm.m; ++row) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t step = 0; step < gemm.k; ++step) {
      double x = a[std::size_t(row * gemm.k + step)];
      const float *y = b.data() + step * gemm.n;
      for (int64_t column = 0; column < gemm.n; ++column)
        sums[std::size_t(column)] += x * double(y[column]);
    }
    for (int64_t column = 0; column < gemm.n; ++column) {
      int64_t place = first + row * gemm.c.rowStride + column * gemm.c.columnStride;
      float product = float(sums[std::size_t(column)] * double(operands.scale));
      float before = gemm.accumulate ? load(operands.c, gemm.c.type, place) : 0.0f;
      store(operands.c, gemm.c.type, place, gemm.accumulate ? before + product : product);
    }
  }
}

} // namespace

Status emulateGemm(const GradcGemm &gemm, const GemmOperands &operands) {
  for (const GradcMatrix *matrix : {&gemm.a, &gemm.b, &gemm.c})
    if (matrix->type < GRADC_F32 || matrix->type > (matrix == &gemm.c ? GRADC_F16 : GRADC_F8E5M2))
      return Status::defect(fmt::format("product {}: type {} of an operand is not known; please "
                                        "report this",
                                        gemm.name, matrix->type));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "A", gemm.a, gemm.m, gemm.k));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "B", gemm.b, gemm.k, gemm.n));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "C", gemm.c, gemm.m, gemm.n));
  for (int64_t i = 0; i < gemm.batch[0]; ++i)
    for (int64_t j = 0; j < gemm.batch[1]; ++j)
      multiply(gemm, operands, i, j);
  return Status();
}

} // namespace gradc::rt

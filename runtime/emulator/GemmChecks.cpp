// See GemmChecks.h.
#include "runtime/emulator/GemmChecks.h"

#include <utility>

#include <fmt/format.h>

#include "runtime/Epilogue.h"
#include "runtime/emulator/Elements.h"

namespace gradc::rt {
namespace {

using emulator::bytesOf;

bool isResultType(int64_t type) { return type >= GRADC_F32 && type <= GRADC_F16; }

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

Status checkTypes(const GradcGemm &gemm) {
  auto unknown = [&](const char *what, int64_t number) {
    return Status::defect(fmt::format("product {}: {} {} of an operand is not known; please "
                                      "report this",
                                      gemm.name, what, number));
  };
  EpilogueParts parts = partsOf(gemm.epilogue);
  if (!parts.known)
    return unknown("epilogue", gemm.epilogue);
  for (const GradcMatrix *matrix : {&gemm.a, &gemm.b})
    if (bytesOf(matrix->type) == 0)
      return unknown("type", matrix->type);
  if (!isResultType(gemm.c.type))
    return unknown("type", gemm.c.type);
  if (parts.hasBias() && !isResultType(gemm.biasType))
    return unknown("type", gemm.biasType);
  return {};
}

} // namespace

Status checkGemm(const GradcGemm &gemm) {
  GRADC_RETURN_IF_ERROR(checkTypes(gemm));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "A", gemm.a, gemm.m, gemm.k));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "B", gemm.b, gemm.k, gemm.n));
  GRADC_RETURN_IF_ERROR(checkBounds(gemm, "C", gemm.c, gemm.m, gemm.n));
  EpilogueParts parts = partsOf(gemm.epilogue);
  if (gemm.epilogue != GRADC_NO_EPILOGUE && gemm.batch[0] * gemm.batch[1] != 1)
    return Status::defect(fmt::format("product {}: an epilogue of {} batches; please report this",
                                      gemm.name, gemm.batch[0] * gemm.batch[1]));
  if (parts.hasBias())
    GRADC_RETURN_IF_ERROR(
        checkBounds(gemm, "bias", {gemm.bias, 0, 1, {0, 0}, gemm.biasType}, 1, biasLength(gemm)));
  if (parts.hasAux())
    GRADC_RETURN_IF_ERROR(checkBounds(
        gemm, "aux", {gemm.aux, gemm.auxStride, 1, {0, 0}, gemm.c.type}, gemm.m, gemm.n));
  return {};
}

} // namespace gradc::rt

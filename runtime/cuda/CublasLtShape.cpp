// See CublasLtShape.h.
#include "runtime/cuda/CublasLtShape.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/Epilogue.h"

namespace gradc::rt {
namespace {

using namespace cublaslt;

/// What plans align buffers to. More, by chance, would make two shapes of one.
constexpr uint32_t mostAlignment = 64;

Status refused(const std::string &what) {
  return Status::defect(what + ", which cuBLASLt cannot be told; please report this");
}

struct TypeInfo {
  DataType type;
  int64_t bytes;
  const char *name;
};
/// In the order of GradcType.
constexpr TypeInfo types[] = {{DataType::f32, 4, "f32"},
                              {DataType::bf16, 2, "bf16"},
                              {DataType::f16, 2, "f16"},
                              {DataType::f8E4M3, 1, "e4m3"},
                              {DataType::f8E5M2, 1, "e5m2"}};

bool isType(int64_t gradcType) { return gradcType >= 0 && gradcType < int64_t(std::size(types)); }
bool isFloat8(DataType type) { return type == DataType::f8E4M3 || type == DataType::f8E5M2; }

/// The largest power of two, up to mostAlignment, that divides every matrix's address.
uint32_t alignmentOf(const std::byte *address, int64_t bytesBetween) {
  auto bits = reinterpret_cast<uintptr_t>(address) | uintptr_t(bytesBetween) | mostAlignment;
  return uint32_t(bits & (~bits + 1));
}

/// Our rows x columns, of which one stride is 1, as the transposed reading has it.
std::optional<CublasLtMatrix> transposed(const GradcMatrix &matrix, int64_t rows, int64_t columns) {
  DataType type = types[matrix.type].type;
  if (matrix.columnStride == 1)
    return CublasLtMatrix{type, opN, columns, rows, std::max(matrix.rowStride, columns)};
  if (matrix.rowStride == 1)
    return CublasLtMatrix{type, opT, rows, columns, std::max(matrix.columnStride, rows)};
  return std::nullopt;
}

Epilogue epilogueOf(int64_t gradcEpilogue) {
  switch (gradcEpilogue) {
  case GRADC_BIAS:
    return epilogueBias;
  case GRADC_GELU:
    return epilogueGelu;
  case GRADC_GELU_AUX:
    return epilogueGeluAux;
  case GRADC_GELU_BIAS:
    return epilogueGeluBias;
  case GRADC_GELU_AUX_BIAS:
    return epilogueGeluAuxBias;
  case GRADC_DGELU:
    return epilogueDGelu;
  case GRADC_DGELU_BIAS_GRADIENT:
    return epilogueDGeluBGrad;
  case GRADC_BIAS_GRADIENT_A: // our A is the library's second operand
    return epilogueBGradB;
  case GRADC_BIAS_GRADIENT_B:
    return epilogueBGradA;
  default:
    return epilogueDefault;
  }
}

/// Two batch dimensions as one, or as `outer` times one.
struct Batches {
  int64_t outer = 1, inner = 1;
  int dimension = 1; ///< whose strides the inner batch has
};
Batches batchesOf(const GradcGemm &gemm) {
  if (gemm.batch[0] == 1)
    return {1, gemm.batch[1], 1};
  if (gemm.batch[1] == 1)
    return {1, gemm.batch[0], 0};
  for (const GradcMatrix *matrix : {&gemm.a, &gemm.b, &gemm.c})
    if (matrix->batchStride[0] != gemm.batch[1] * matrix->batchStride[1])
      return {gemm.batch[0], gemm.batch[1], 1};
  return {1, gemm.batch[0] * gemm.batch[1], 1};
}

Status checkTypes(const GradcGemm &gemm) {
  for (const GradcMatrix *matrix : {&gemm.a, &gemm.b, &gemm.c})
    if (!isType(matrix->type))
      return refused(fmt::format("type {} of an operand", matrix->type));
  EpilogueParts parts = partsOf(gemm.epilogue);
  if (!parts.known || (parts.hasBias() && !isType(gemm.biasType)))
    return refused(fmt::format("epilogue {} with a bias of type {}", gemm.epilogue, gemm.biasType));
  bool float8A = isFloat8(types[gemm.a.type].type), float8B = isFloat8(types[gemm.b.type].type);
  if (float8A != float8B || (!float8A && gemm.a.type != gemm.b.type))
    return refused("operands of two types");
  if (gemm.epilogue != GRADC_NO_EPILOGUE && gemm.batch[0] * gemm.batch[1] != 1)
    return refused("an epilogue of batches");
  return {};
}

} // namespace

int64_t cublasLtBytesOf(int64_t gradcType) {
  return isType(gradcType) ? types[gradcType].bytes : 0;
}

Expected<CublasLtCalls> cublasLtCalls(const GradcGemm &gemm, const GemmAddresses &addresses) {
  GRADC_RETURN_IF_ERROR(checkTypes(gemm));
  std::optional<CublasLtMatrix> first = transposed(gemm.b, gemm.k, gemm.n),
                                second = transposed(gemm.a, gemm.m, gemm.k),
                                result = transposed(gemm.c, gemm.m, gemm.n);
  if (!first || !second || !result || result->transpose != opN)
    return refused("a matrix without contiguous rows or columns");
  if (isFloat8(first->type) && (first->transpose != opT || second->transpose != opN))
    return refused("fp8 operands that do not lie along the depth");
  Batches batches = batchesOf(gemm);
  auto lay = [&](CublasLtMatrix &matrix, const GradcMatrix &ours, const std::byte *address) {
    int64_t bytes = types[ours.type].bytes;
    matrix.batchStride = batches.inner > 1 ? ours.batchStride[batches.dimension] : 0;
    int64_t outer = batches.outer > 1 ? ours.batchStride[0] : 0;
    matrix.alignment = alignmentOf(address, (matrix.batchStride | outer) * bytes);
  };
  lay(*first, gemm.b, addresses.b);
  lay(*second, gemm.a, addresses.a);
  lay(*result, gemm.c, addresses.c);
  EpilogueParts parts = partsOf(gemm.epilogue);
  CublasLtShape shape;
  shape.first = *first;
  shape.second = *second;
  shape.result = *result;
  shape.batch = batches.inner;
  shape.compute = gemm.tf32 ? compute32FFastTf32 : compute32F;
  shape.epilogue = epilogueOf(gemm.epilogue);
  if (parts.hasBias())
    shape.biasType = types[gemm.biasType].type;
  shape.auxStride = parts.hasAux() ? gemm.auxStride : 0;
  shape.accumulates = gemm.accumulate != 0;
  shape.scaled = gemm.scaled != 0;
  shape.workspaceBytes = gemm.workspaceBytes;
  return CublasLtCalls{shape, batches.outer};
}

std::string CublasLtShape::text() const {
  auto nameOf = [](DataType type) {
    return std::find_if(std::begin(types), std::end(types),
                        [&](const TypeInfo &info) { return info.type == type; })
        ->name;
  };
  auto matrix = [&](const CublasLtMatrix &x) {
    return fmt::format("{} {} {}x{}:{}+{} @{}", nameOf(x.type), x.transpose == opT ? "t" : "n",
                       x.rows, x.columns, x.stride, x.batchStride, x.alignment);
  };
  std::string all =
      fmt::format("{} * {} -> {}, batch {}, compute {}, workspace {}", matrix(first),
                  matrix(second), matrix(result), batch, int32_t(compute), workspaceBytes);
  if (epilogue != epilogueDefault)
    all += fmt::format(", epilogue {} {} {}", uint32_t(epilogue),
                       biasType ? nameOf(*biasType) : "-", auxStride);
  return all + (accumulates ? ", accumulates" : "") + (scaled ? ", scaled" : "");
}

} // namespace gradc::rt

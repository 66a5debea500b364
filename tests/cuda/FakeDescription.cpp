// See FakeDescription.h. The rules are those of cuBLASLt's documentation for GPUs of capability 8.9
// and 9.0.
#include "tests/cuda/FakeDescription.h"

#include <limits>

#include <fmt/format.h>

namespace gradc::rt::cublaslt {
namespace {

bool isFloat8(DataType type) { return type == f8E4M3 || type == f8E5M2; }

bool isAligned(const void *pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

bool addsBias(uint32_t epilogue) {
  return epilogue == epilogueBias || epilogue == epilogueGeluBias ||
         epilogue == epilogueGeluAuxBias;
}
bool writesBias(uint32_t epilogue) {
  return epilogue == epilogueDGeluBGrad || epilogue == epilogueBGradA || epilogue == epilogueBGradB;
}
bool hasAux(uint32_t epilogue) {
  return epilogue == epilogueGeluAux || epilogue == epilogueGeluAuxBias ||
         epilogue == epilogueDGelu || epilogue == epilogueDGeluBGrad;
}

int64_t gradcType(int32_t type) {
  switch (type) {
  case bf16:
    return GRADC_BF16;
  case f16:
    return GRADC_F16;
  case f8E4M3:
    return GRADC_F8E4M3;
  case f8E5M2:
    return GRADC_F8E5M2;
  default:
    return GRADC_F32;
  }
}

std::string whyNotShapes(const FakeProduct &product) {
  const auto &[descriptor, a, b, c, d] = product;
  int64_t depthOfB = descriptor.transposeB == opT ? b.columns : b.rows;
  int64_t rowsOfA = descriptor.transposeA == opT ? a.columns : a.rows;
  int64_t columnsOfB = descriptor.transposeB == opT ? b.rows : b.columns;
  if (depthOfB != product.k() || rowsOfA != d.rows || columnsOfB != d.columns)
    return "the matrices do not fit each other";
  if (c.rows != d.rows || c.columns != d.columns || c.type != d.type || c.stride != d.stride)
    return "C and D differ";
  for (const MatrixLayoutOpaque *matrix : {&a, &b, &c, &d})
    if (matrix->batch != d.batch)
      return "batch counts differ";
  return "";
}

std::string whyNotTypes(const FakeProduct &product) {
  const auto &[descriptor, a, b, c, d] = product;
  if (isFloat8(a.type) != isFloat8(b.type) || (!isFloat8(a.type) && a.type != b.type))
    return "A and B are of two types";
  if (descriptor.compute == compute32FFastTf32 && a.type != f32)
    return "tf32 of operands that are not f32";
  bool isKnown = d.type == f32 || d.type == bf16 || d.type == f16;
  if (!isKnown || (!isFloat8(a.type) && d.type != f32 && d.type != a.type))
    return "no kernels with a D of that type";
  return "";
}

std::string whyNotFloat8(const FakeProduct &product) {
  const auto &[descriptor, a, b, c, d] = product;
  bool scaled = descriptor.scaleA || descriptor.scaleB;
  if (!isFloat8(a.type))
    return scaled ? "scales of operands that are not fp8" : "";
  if (descriptor.transposeA != opT || descriptor.transposeB != opN)
    return "fp8 must be A transposed, B not";
  if (a.type == f8E5M2 && b.type == f8E5M2)
    return "fp8 of two e5m2";
  for (int64_t extent : {product.m(), product.n(), product.k(), a.stride, b.stride})
    if (extent % 16 != 0)
      return "fp8 needs multiples of 16";
  if (d.stride * (d.type == f32 ? 4 : 2) % 16 != 0)
    return "fp8 needs a D whose columns are aligned to 16 bytes";
  if (!isAligned(descriptor.scaleA, 4) || !isAligned(descriptor.scaleB, 4))
    return "a scale is misaligned";
  return "";
}

std::string whyNotEpilogue(const FakeProduct &product) {
  const auto &[descriptor, a, b, c, d] = product;
  uint32_t epilogue = descriptor.epilogue;
  if (epilogue == epilogueDefault)
    return "";
  if (d.batch != 1)
    return "an epilogue of batches without strides of its own";
  if (isFloat8(a.type) && epilogue != epilogueBias)
    return "no fp8 kernels with that epilogue";
  bool hasBias = addsBias(epilogue) || writesBias(epilogue);
  if (!hasBias && descriptor.biasType != -1)
    return "a type of a bias and no bias";
  if (hasBias) {
    if (!descriptor.bias || !isAligned(descriptor.bias, 16))
      return "the bias is null or misaligned";
    int32_t needed = isFloat8(a.type) && d.type == f32 ? bf16 : d.type;
    if (descriptor.biasType != -1 && descriptor.biasType != needed)
      return "no kernels with a bias of that type";
  }
  if (!hasAux(epilogue))
    return "";
  if (!descriptor.aux || !isAligned(descriptor.aux, 16))
    return "aux is null or misaligned";
  if (descriptor.auxStride % 8 != 0 || descriptor.auxStride < product.m())
    return "the stride of aux is no multiple of 8, or too small";
  return "";
}

} // namespace

std::string FakeProduct::whyNot() const {
  for (auto rule : {whyNotShapes, whyNotTypes, whyNotFloat8, whyNotEpilogue})
    if (std::string reason = rule(*this); !reason.empty())
      return reason;
  return "";
}

std::string FakeProduct::text() const {
  auto matrix = [](const MatrixLayoutOpaque &x) {
    return fmt::format("{} {} {} {} {} {};", int32_t(x.type), x.rows, x.columns, x.stride, x.batch,
                       x.batchStride);
  };
  return fmt::format("{} {} {} {} {} {};", int32_t(descriptor.compute), descriptor.transposeA,
                     descriptor.transposeB, descriptor.epilogue, descriptor.biasType,
                     descriptor.auxStride) +
         matrix(a) + matrix(b) + matrix(c) + matrix(d);
}

GradcGemm FakeProduct::gemm(bool accumulates) const {
  // D column by column is its transpose row by row: n x m, of B's transpose and A's.
  auto matrix = [](const MatrixLayoutOpaque &x, bool transposed) {
    GradcMatrix ours{};
    ours.buffer.bytes = std::numeric_limits<int64_t>::max();
    ours.rowStride = transposed ? 1 : x.stride;
    ours.columnStride = transposed ? x.stride : 1;
    ours.batchStride[1] = x.batchStride;
    ours.type = gradcType(x.type);
    return ours;
  };
  static const std::map<uint32_t, GradcEpilogue> epilogues = {
      {epilogueDefault, GRADC_NO_EPILOGUE},
      {epilogueBias, GRADC_BIAS},
      {epilogueGelu, GRADC_GELU},
      {epilogueGeluAux, GRADC_GELU_AUX},
      {epilogueGeluBias, GRADC_GELU_BIAS},
      {epilogueGeluAuxBias, GRADC_GELU_AUX_BIAS},
      {epilogueDGelu, GRADC_DGELU},
      {epilogueDGeluBGrad, GRADC_DGELU_BIAS_GRADIENT},
      {epilogueBGradA, GRADC_BIAS_GRADIENT_B},
      {epilogueBGradB, GRADC_BIAS_GRADIENT_A},
  };
  GradcGemm ours{};
  ours.name = "fake cublasLtMatmul";
  ours.m = n(), ours.n = m(), ours.k = k();
  ours.batch[0] = 1, ours.batch[1] = d.batch;
  ours.a = matrix(b, descriptor.transposeB == opT);
  ours.b = matrix(a, descriptor.transposeA == opT);
  ours.c = matrix(d, false);
  ours.accumulate = accumulates;
  ours.tf32 = descriptor.compute == compute32FFastTf32;
  ours.epilogue = epilogues.at(descriptor.epilogue);
  ours.bias.bytes = ours.aux.bytes = std::numeric_limits<int64_t>::max();
  ours.biasType = gradcType(descriptor.biasType == -1 ? int32_t(d.type) : descriptor.biasType);
  ours.auxStride = descriptor.auxStride;
  return ours;
}

} // namespace gradc::rt::cublaslt

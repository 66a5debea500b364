// What the epilogues of Abi.h are made of, for those who carry them out.
#pragma once

#include "runtime/Abi.h"

namespace gradc::rt {

struct EpilogueParts {
  bool known = true;
  bool addsBias = false;
  bool gelu = false;
  bool dgelu = false;
  bool writesAux = false;
  bool sumsResult = false, sumsA = false, sumsB = false; ///< a bias gradient: of what

  bool writesBias() const { return sumsResult || sumsA || sumsB; }
  bool hasBias() const { return addsBias || writesBias(); }
  bool hasAux() const { return writesAux || dgelu; }
};

constexpr EpilogueParts partsOf(int64_t epilogue) {
  switch (epilogue) {
  case GRADC_NO_EPILOGUE:
    return {};
  case GRADC_BIAS:
    return {.addsBias = true};
  case GRADC_GELU:
    return {.gelu = true};
  case GRADC_GELU_AUX:
    return {.gelu = true, .writesAux = true};
  case GRADC_GELU_BIAS:
    return {.addsBias = true, .gelu = true};
  case GRADC_GELU_AUX_BIAS:
    return {.addsBias = true, .gelu = true, .writesAux = true};
  case GRADC_DGELU:
    return {.dgelu = true};
  case GRADC_DGELU_BIAS_GRADIENT:
    return {.dgelu = true, .sumsResult = true};
  case GRADC_BIAS_GRADIENT_A:
    return {.sumsA = true};
  case GRADC_BIAS_GRADIENT_B:
    return {.sumsB = true};
  default:
    return {.known = false};
  }
}

/// Numbers of the bias, or of its gradient.
constexpr int64_t biasLength(const GradcGemm &gemm) {
  return partsOf(gemm.epilogue).sumsA ? gemm.m : gemm.n;
}

} // namespace gradc::rt

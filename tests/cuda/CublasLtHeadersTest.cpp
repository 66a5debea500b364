// Our declarations of cuBLASLt against the toolkit's own, where it is installed.
#include "runtime/cuda/CublasLtApi.h"

#include <gtest/gtest.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace gradc::rt::cublaslt {

static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(HeuristicResult, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(HeuristicResult, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

#define SAME(ours, theirs) static_assert(int64_t(ours) == int64_t(theirs))
SAME(statusSuccess, CUBLAS_STATUS_SUCCESS);
SAME(statusNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(statusInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME(statusExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(statusNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(f32, CUDA_R_32F);
SAME(f16, CUDA_R_16F);
SAME(bf16, CUDA_R_16BF);
SAME(f8E4M3, CUDA_R_8F_E4M3);
SAME(f8E5M2, CUDA_R_8F_E5M2);
SAME(compute32F, CUBLAS_COMPUTE_32F);
SAME(compute32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(opN, CUBLAS_OP_N);
SAME(opT, CUBLAS_OP_T);
SAME(reduceNone, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(reduceInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(reduceComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(epilogueDefault, CUBLASLT_EPILOGUE_DEFAULT);
SAME(epilogueBias, CUBLASLT_EPILOGUE_BIAS);
SAME(epilogueGelu, CUBLASLT_EPILOGUE_GELU);
SAME(epilogueGeluAux, CUBLASLT_EPILOGUE_GELU_AUX);
SAME(epilogueGeluBias, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(epilogueGeluAuxBias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
SAME(epilogueDGelu, CUBLASLT_EPILOGUE_DGELU);
SAME(epilogueDGeluBGrad, CUBLASLT_EPILOGUE_DGELU_BGRAD);
SAME(epilogueBGradA, CUBLASLT_EPILOGUE_BGRADA);
SAME(epilogueBGradB, CUBLASLT_EPILOGUE_BGRADB);
SAME(matmulTransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(matmulTransposeB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(matmulEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(matmulBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(matmulAuxPointer, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
SAME(matmulAuxStride, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
SAME(matmulScaleAPointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
SAME(matmulScaleBPointer, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
SAME(matmulBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
SAME(layoutBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(layoutBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(preferenceWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(preferenceReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(preferenceAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(preferenceAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(preferenceAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(preferenceAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
#undef SAME

/// Parameters by number and size: the types are ours.
template <typename> struct Parameters;
template <typename R, typename... P> struct Parameters<R (*)(P...)> {
  static constexpr size_t count = sizeof...(P);
  static constexpr size_t sizes[] = {sizeof(R), sizeof(P)...};
  static constexpr bool agree(const size_t *others) {
    for (size_t i = 0; i <= count; ++i)
      if (sizes[i] != others[i])
        return false;
    return true;
  }
};
#define SAME_PARAMETERS(name, result, parameters)                                                  \
  static_assert(Parameters<result(*) parameters>::count ==                                         \
                Parameters<decltype(&cublasLt##name)>::count);                                     \
  static_assert(                                                                                   \
      Parameters<result(*) parameters>::agree(Parameters<decltype(&cublasLt##name)>::sizes));
GRADC_CUBLASLT_FUNCTIONS(SAME_PARAMETERS)

TEST(CublasLtHeaders, AgreeWithOurs) { SUCCEED() << "compared when this was compiled"; }

} // namespace gradc::rt::cublaslt
#else
TEST(CublasLtHeaders, AgreeWithOurs) { GTEST_SKIP() << "no CUDA toolkit: nothing to compare with"; }
#endif

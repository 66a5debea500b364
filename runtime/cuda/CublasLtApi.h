// What this runtime uses of cuBLASLt's C interface: types, values and functions, declared anew so
// that nothing of a CUDA toolkit is needed to build. A test compares them with the toolkit's
// headers where those are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradc::rt::cublaslt {

using Handle = struct HandleOpaque *;
using MatmulDescriptor = struct MatmulDescriptorOpaque *;
using MatrixLayout = struct MatrixLayoutOpaque *;
using Preference = struct PreferenceOpaque *;
using Stream = struct StreamOpaque *; ///< a CUstream

/// Opaque, but of one size: it may be kept, and used again with the same version of the library.
struct Algorithm {
  uint64_t data[8];
};

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceBytes;
  int32_t state; ///< a Result
  float waves;
  int32_t reserved[4];
};

enum Result : int32_t {
  statusSuccess = 0,
  statusNotInitialized = 1,
  statusInvalidValue = 7,
  statusExecutionFailed = 13,
  statusNotSupported = 15,
};
enum DataType : int32_t { f32 = 0, f16 = 2, bf16 = 14, f8E4M3 = 28, f8E5M2 = 29 };
enum ComputeType : int32_t { compute32F = 68, compute32FFastTf32 = 77 };
enum Transpose : int32_t { opN = 0, opT = 1 };
enum ReductionScheme : uint32_t { reduceNone = 0, reduceInPlace = 1, reduceComputeType = 2 };

enum Epilogue : uint32_t {
  epilogueDefault = 1,
  epilogueBias = 4,
  epilogueGelu = 32,
  epilogueGeluAux = 160,
  epilogueGeluBias = 36,
  epilogueGeluAuxBias = 164,
  epilogueDGelu = 192,
  epilogueDGeluBGrad = 208,
  epilogueBGradA = 256,
  epilogueBGradB = 512,
};

enum MatmulAttribute : int32_t {
  matmulTransposeA = 3,
  matmulTransposeB = 4,
  matmulEpilogue = 7,
  matmulBiasPointer = 8,
  matmulAuxPointer = 11,
  matmulAuxStride = 12,
  matmulScaleAPointer = 17,
  matmulScaleBPointer = 18,
  matmulBiasType = 26,
};

enum LayoutAttribute : int32_t { layoutBatchCount = 5, layoutBatchStride = 6 };

enum PreferenceAttribute : int32_t {
  preferenceWorkspaceBytes = 1,
  preferenceReductionSchemes = 3,
  preferenceAlignmentA = 5,
  preferenceAlignmentB = 6,
  preferenceAlignmentC = 7,
  preferenceAlignmentD = 8,
};

} // namespace gradc::rt::cublaslt

// The functions: name without "cublasLt", what it returns, its parameters.
#define GRADC_CUBLASLT_FUNCTIONS(F)                                                                \
  F(Create, Result, (Handle *))                                                                    \
  F(Destroy, Result, (Handle))                                                                     \
  F(GetVersion, size_t, ())                                                                        \
  F(GetStatusName, const char *, (Result))                                                         \
  F(MatmulDescCreate, Result, (MatmulDescriptor *, ComputeType, DataType))                         \
  F(MatmulDescDestroy, Result, (MatmulDescriptor))                                                 \
  F(MatmulDescSetAttribute, Result, (MatmulDescriptor, MatmulAttribute, const void *, size_t))     \
  F(MatrixLayoutCreate, Result, (MatrixLayout *, DataType, uint64_t, uint64_t, int64_t))           \
  F(MatrixLayoutDestroy, Result, (MatrixLayout))                                                   \
  F(MatrixLayoutSetAttribute, Result, (MatrixLayout, LayoutAttribute, const void *, size_t))       \
  F(MatmulPreferenceCreate, Result, (Preference *))                                                \
  F(MatmulPreferenceDestroy, Result, (Preference))                                                 \
  F(MatmulPreferenceSetAttribute, Result, (Preference, PreferenceAttribute, const void *, size_t)) \
  F(MatmulAlgoGetHeuristic, Result,                                                                \
    (Handle, MatmulDescriptor, MatrixLayout, MatrixLayout, MatrixLayout, MatrixLayout, Preference, \
     int, HeuristicResult *, int *))                                                               \
  F(Matmul, Result,                                                                                \
    (Handle, MatmulDescriptor, const void *, const void *, MatrixLayout, const void *,             \
     MatrixLayout, const void *, const void *, MatrixLayout, void *, MatrixLayout,                 \
     const Algorithm *, void *, size_t, Stream))

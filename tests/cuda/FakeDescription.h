// The objects of the stand-in for cuBLASLt, and whether the library would take them.
#pragma once

#include <map>
#include <string>

#include "runtime/Abi.h"
#include "runtime/cuda/CublasLtApi.h"

namespace gradc::rt::cublaslt {

struct MatmulDescriptorOpaque {
  ComputeType compute;
  int32_t transposeA = opN, transposeB = opN;
  uint32_t epilogue = epilogueDefault;
  const void *bias = nullptr, *aux = nullptr, *scaleA = nullptr, *scaleB = nullptr;
  int32_t biasType = -1;
  int64_t auxStride = 0;
};

struct MatrixLayoutOpaque {
  DataType type;
  int64_t rows, columns, stride;
  int32_t batch = 1;
  int64_t batchStride = 0;
};

struct PreferenceOpaque {
  uint64_t workspaceBytes = 0;
  uint32_t schemes = 7;
  uint32_t alignmentA = 256, alignmentB = 256, alignmentC = 256, alignmentD = 256;
};

/// A product as it is described to a call.
struct FakeProduct {
  const MatmulDescriptorOpaque &descriptor;
  const MatrixLayoutOpaque &a, &b, &c, &d;

  /// Rows and columns of D, and the depth.
  int64_t m() const { return d.rows; }
  int64_t n() const { return d.columns; }
  int64_t k() const { return descriptor.transposeA == opT ? a.rows : a.columns; }

  /// Why the library would refuse it; empty where it would not.
  std::string whyNot() const;
  /// Equal for equal descriptions only: what an algorithm was chosen for.
  std::string text() const;
  /// The same product for the host to play, by rows; its buffers have no bounds.
  GradcGemm gemm(bool accumulates) const;
};

} // namespace gradc::rt::cublaslt

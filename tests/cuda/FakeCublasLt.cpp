// A stand-in for cuBLASLt, as a shared library: takes what the library takes and refuses, with a
// line on stderr, what it would refuse or misread; multiplies on the host. An algorithm belongs to
// the description that it was found for, and its workspace is overwritten.
#include "tests/cuda/FakeCublasLt.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>

#include "runtime/emulator/Gemm.h"
#include "tests/cuda/FakeDescription.h"

namespace gradc::rt::cublaslt {

struct HandleOpaque {};

namespace {

int64_t liveObjects = 0, products = 0, searches = 0;

Result refuse(const char *call, const std::string &reason) {
  std::fprintf(stderr, "fake %s: %s\n", call, reason.c_str());
  return statusInvalidValue;
}

template <typename T> Result create(T **object, T value) {
  *object = new T(value);
  ++liveObjects;
  return statusSuccess;
}
template <typename T> Result destroy(T *object) {
  if (!object)
    return statusInvalidValue;
  delete object;
  --liveObjects;
  return statusSuccess;
}

/// Copies an attribute of exactly the field's size.
template <typename T> Result assign(const char *call, T &field, const void *value, size_t bytes) {
  if (!value || bytes != sizeof(T))
    return refuse(call, "an attribute of another size");
  std::memcpy(&field, value, bytes);
  return statusSuccess;
}

/// What Algorithm::data holds here.
enum AlgorithmField { kind, workspaceNeeded, description, alignments };
enum AlgorithmKind : uint64_t { inOneGo = 1, inParts = 2, inPlace = 3 };

uint64_t packed(const PreferenceOpaque &preference) {
  return uint64_t(preference.alignmentA) | uint64_t(preference.alignmentB) << 16 |
         uint64_t(preference.alignmentC) << 32 | uint64_t(preference.alignmentD) << 48;
}

/// A product that was checked, to be carried out where the device's memory may be touched.
struct Execution {
  GradcGemm gemm;
  GemmOperands operands; ///< without the scales
  const float *scaleA, *scaleB;
  void *workspace;
  uint64_t workspaceBytes;
};

int execute(const void *data) {
  Execution execution = *static_cast<const Execution *>(data);
  if (execution.workspaceBytes > 0)
    std::memset(execution.workspace, 0xff, execution.workspaceBytes);
  for (const float *scale : {execution.scaleA, execution.scaleB})
    execution.operands.scale *= scale ? *scale : 1.0f;
  gradc::rt::Status played = emulateGemm(execution.gemm, execution.operands);
  if (!played.ok())
    refuse("cublasLtMatmul", played.message());
  return played.ok() ? 0 : 999;
}

/// On the stand-in of the driver (FakeDriver/Machine.h) where the process has it, else at once.
int onStream(Stream stream, const Execution &execution) {
  using Queue = int(void *, int (*)(const void *), const void *, unsigned long long);
  const char *driver = std::getenv("GRADC_LIBCUDA");
  void *library = driver ? dlopen(driver, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  auto *queue = reinterpret_cast<Queue *>(library ? dlsym(library, "gradcFakeQueue") : nullptr);
  return queue ? queue(stream, execute, &execution, sizeof(execution)) : execute(&execution);
}

bool isAligned(const void *pointer, uint64_t bytes) {
  return bytes != 0 && reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

} // namespace
} // namespace gradc::rt::cublaslt

using namespace gradc::rt;
using namespace gradc::rt::cublaslt;

#define FAKE __attribute__((visibility("default")))

extern "C" {

FAKE int64_t fakeCublasLtLiveObjects() { return liveObjects; }
FAKE int64_t fakeCublasLtProducts() { return products; }
FAKE int64_t fakeCublasLtSearches() { return searches; }

FAKE Result cublasLtCreate(Handle *handle) {
  const char *refusals = std::getenv("GRADC_FAKE_CUBLASLT_REFUSALS");
  static int refused = 0;
  if (refusals && refused < std::atoi(refusals)) {
    ++refused;
    *handle = nullptr;
    return statusNotInitialized;
  }
  return create(handle, HandleOpaque{});
}
FAKE Result cublasLtDestroy(Handle handle) { return destroy(handle); }
FAKE size_t cublasLtGetVersion() { return 130100; }
FAKE const char *cublasLtGetStatusName(Result status) {
  switch (status) {
  case statusNotInitialized:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case statusInvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  default:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}

FAKE Result cublasLtMatmulDescCreate(MatmulDescriptor *descriptor, ComputeType compute,
                                     DataType scale) {
  if (scale != f32 || (compute != compute32F && compute != compute32FFastTf32))
    return refuse("cublasLtMatmulDescCreate", "no such compute or scale type");
  return create(descriptor, MatmulDescriptorOpaque{compute});
}
FAKE Result cublasLtMatmulDescDestroy(MatmulDescriptor descriptor) { return destroy(descriptor); }

FAKE Result cublasLtMatmulDescSetAttribute(MatmulDescriptor x, MatmulAttribute attribute,
                                           const void *value, size_t bytes) {
  const char *call = "cublasLtMatmulDescSetAttribute";
  switch (attribute) {
  case matmulTransposeA:
    return assign(call, x->transposeA, value, bytes);
  case matmulTransposeB:
    return assign(call, x->transposeB, value, bytes);
  case matmulEpilogue:
    return assign(call, x->epilogue, value, bytes);
  case matmulBiasPointer:
    return assign(call, x->bias, value, bytes);
  case matmulAuxPointer:
    return assign(call, x->aux, value, bytes);
  case matmulAuxStride:
    return assign(call, x->auxStride, value, bytes);
  case matmulScaleAPointer:
    return assign(call, x->scaleA, value, bytes);
  case matmulScaleBPointer:
    return assign(call, x->scaleB, value, bytes);
  case matmulBiasType:
    return assign(call, x->biasType, value, bytes);
  }
  return refuse(call, "no such attribute");
}

FAKE Result cublasLtMatrixLayoutCreate(MatrixLayout *layout, DataType type, uint64_t rows,
                                       uint64_t columns, int64_t stride) {
  if (rows == 0 || columns == 0 || stride < int64_t(rows))
    return refuse("cublasLtMatrixLayoutCreate", "columns overlap, or there is nothing in them");
  return create(layout, MatrixLayoutOpaque{type, int64_t(rows), int64_t(columns), stride});
}
FAKE Result cublasLtMatrixLayoutDestroy(MatrixLayout layout) { return destroy(layout); }

FAKE Result cublasLtMatrixLayoutSetAttribute(MatrixLayout layout, LayoutAttribute attribute,
                                             const void *value, size_t bytes) {
  const char *call = "cublasLtMatrixLayoutSetAttribute";
  switch (attribute) {
  case layoutBatchCount:
    return assign(call, layout->batch, value, bytes);
  case layoutBatchStride:
    return assign(call, layout->batchStride, value, bytes);
  }
  return refuse(call, "no such attribute");
}

FAKE Result cublasLtMatmulPreferenceCreate(Preference *preference) {
  return create(preference, PreferenceOpaque{});
}
FAKE Result cublasLtMatmulPreferenceDestroy(Preference preference) { return destroy(preference); }

FAKE Result cublasLtMatmulPreferenceSetAttribute(Preference x, PreferenceAttribute attribute,
                                                 const void *value, size_t bytes) {
  const char *call = "cublasLtMatmulPreferenceSetAttribute";
  switch (attribute) {
  case preferenceWorkspaceBytes:
    return assign(call, x->workspaceBytes, value, bytes);
  case preferenceReductionSchemes:
    return assign(call, x->schemes, value, bytes);
  case preferenceAlignmentA:
    return assign(call, x->alignmentA, value, bytes);
  case preferenceAlignmentB:
    return assign(call, x->alignmentB, value, bytes);
  case preferenceAlignmentC:
    return assign(call, x->alignmentC, value, bytes);
  case preferenceAlignmentD:
    return assign(call, x->alignmentD, value, bytes);
  }
  return refuse(call, "no such attribute");
}

FAKE Result cublasLtMatmulAlgoGetHeuristic(Handle handle, MatmulDescriptor descriptor,
                                           MatrixLayout a, MatrixLayout b, MatrixLayout c,
                                           MatrixLayout d, Preference preference, int wanted,
                                           HeuristicResult *results, int *found) {
  const char *call = "cublasLtMatmulAlgoGetHeuristic";
  ++searches;
  *found = 0;
  if (!handle || wanted <= 0)
    return refuse(call, "no handle, or nothing wanted");
  FakeProduct product{*descriptor, *a, *b, *c, *d};
  if (std::string reason = product.whyNot(); !reason.empty()) {
    refuse(call, reason);
    return statusNotSupported;
  }
  auto offer = [&](AlgorithmKind of, uint64_t bytes) {
    if (*found == wanted || bytes > preference->workspaceBytes)
      return;
    HeuristicResult &result = results[(*found)++];
    result = {{{of, bytes, std::hash<std::string>()(product.text()), packed(*preference)}},
              size_t(bytes),
              statusSuccess,
              1,
              {}};
  };
  if (preference->schemes & reduceInPlace)
    offer(inPlace, 64);
  if (preference->schemes & reduceComputeType)
    offer(inParts, uint64_t(2 * 4 * product.m() * product.n()));
  offer(inOneGo, 0);
  return statusSuccess;
}

FAKE Result cublasLtMatmul(Handle handle, MatmulDescriptor descriptor, const void *alpha,
                           const void *a, MatrixLayout layoutA, const void *b, MatrixLayout layoutB,
                           const void *beta, const void *c, MatrixLayout layoutC, void *d,
                           MatrixLayout layoutD, const Algorithm *algorithm, void *workspace,
                           size_t workspaceBytes, Stream stream) {
  const char *call = "cublasLtMatmul";
  FakeProduct product{*descriptor, *layoutA, *layoutB, *layoutC, *layoutD};
  if (std::string reason = product.whyNot(); !handle || !reason.empty())
    return refuse(call, reason);
  if (!algorithm || algorithm->data[description] != std::hash<std::string>()(product.text()))
    return refuse(call, "the algorithm was found for another description");
  if (algorithm->data[kind] == inPlace)
    return refuse(call, "an algorithm whose bits depend on the order of blocks");
  uint64_t promised = algorithm->data[alignments];
  for (const void *pointer : {a, b, c, static_cast<const void *>(d)}) {
    if (!isAligned(pointer, promised & 0xffff))
      return refuse(call, "a matrix is less aligned than was said");
    promised >>= 16;
  }
  uint64_t needed = algorithm->data[workspaceNeeded];
  if (needed > workspaceBytes || (needed > 0 && !isAligned(workspace, 16)))
    return refuse(call, "the workspace is too small, or misaligned");
  float one = *static_cast<const float *>(alpha), addend = *static_cast<const float *>(beta);
  if (one != 1 || (addend != 0 && addend != 1) || c != d)
    return refuse(call, "factors or places that this stand-in does not play");
  if (addend != 0 && descriptor->epilogue != epilogueDefault &&
      descriptor->epilogue != epilogueBGradA && descriptor->epilogue != epilogueBGradB)
    return refuse(call, "an epilogue of a result that is added to");
  Execution execution{product.gemm(addend != 0),
                      {static_cast<const std::byte *>(b), static_cast<const std::byte *>(a),
                       static_cast<std::byte *>(d), 1,
                       static_cast<std::byte *>(const_cast<void *>(descriptor->bias)),
                       static_cast<std::byte *>(const_cast<void *>(descriptor->aux))},
                      static_cast<const float *>(descriptor->scaleA),
                      static_cast<const float *>(descriptor->scaleB),
                      workspace,
                      needed};
  ++products;
  return onStream(stream, execution) == 0 ? statusSuccess : statusExecutionFailed;
}

} // extern "C"

// Each function above has the parameters that the runtime calls it with.
#define GRADC_CUBLASLT_AGREES(name, result, parameters)                                            \
  static_assert(std::is_same_v<decltype(&cublasLt##name), result(*) parameters>);
GRADC_CUBLASLT_FUNCTIONS(GRADC_CUBLASLT_AGREES)

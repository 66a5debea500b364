// See CublasLtPlan.h.
#include "runtime/cuda/CublasLtPlan.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

namespace gradc::rt {
namespace {

using namespace cublaslt;

/// What the library asks for.
constexpr uintptr_t workspaceAlignment = 256;

std::pair<void *, size_t> alignedWorkspace(std::byte *begin, int64_t bytes) {
  auto from = reinterpret_cast<uintptr_t>(begin);
  uintptr_t aligned = (from + workspaceAlignment - 1) & ~(workspaceAlignment - 1);
  uintptr_t end = from + uintptr_t(bytes);
  return aligned < end ? std::pair(reinterpret_cast<void *>(aligned), size_t(end - aligned))
                       : std::pair(static_cast<void *>(nullptr), size_t(0));
}

/// Search preferences that live as long as one search.
class SearchPreference {
public:
  explicit SearchPreference(const Functions &functions) : functions(functions) {}
  ~SearchPreference() {
    if (preference)
      functions.MatmulPreferenceDestroy(preference);
  }
  SearchPreference(const SearchPreference &) = delete;
  SearchPreference &operator=(const SearchPreference &) = delete;

  cublaslt::Result make(const CublasLtShape &shape, uint64_t workspaceBytes) {
    cublaslt::Result status = functions.MatmulPreferenceCreate(&preference);
    auto set = [&](PreferenceAttribute attribute, auto value) {
      if (status == statusSuccess)
        status =
            functions.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
    };
    set(preferenceWorkspaceBytes, workspaceBytes);
    // Parts of a sum that go to the workspace in f32 and are added in order. In place, blocks would
    // add rounded parts.
    set(preferenceReductionSchemes, uint32_t(reduceComputeType));
    set(preferenceAlignmentA, shape.first.alignment);
    set(preferenceAlignmentB, shape.second.alignment);
    set(preferenceAlignmentC, shape.result.alignment);
    set(preferenceAlignmentD, shape.result.alignment);
    return status;
  }

  const Functions &functions;
  Preference preference = nullptr;
};

} // namespace

CublasLtPlan::CublasLtPlan(const CublasLtLibrary &library, Handle handle,
                           const CublasLtShape &shape)
    : library_(library), handle_(handle), shape_(shape) {}

Expected<std::unique_ptr<CublasLtPlan>>
CublasLtPlan::make(const CublasLtLibrary &library, Handle handle, const CublasLtShape &shape) {
  std::unique_ptr<CublasLtPlan> plan(new CublasLtPlan(library, handle, shape));
  GRADC_RETURN_IF_ERROR(plan->makeDescriptors());
  return plan;
}

CublasLtPlan::~CublasLtPlan() {
  const Functions &functions = library_.functions();
  for (MatrixLayout layout : {first_, second_, result_})
    if (layout)
      functions.MatrixLayoutDestroy(layout);
  if (descriptor_)
    functions.MatmulDescDestroy(descriptor_);
}

Status CublasLtPlan::check(cublaslt::Result status, const char *call) const {
  return library_.check(status, call);
}

template <typename T> Status CublasLtPlan::set(MatmulAttribute attribute, T value) {
  const auto *bytes = static_cast<const void *>(std::addressof(value)); // T may be a pointer
  return check(
      library_.functions().MatmulDescSetAttribute(descriptor_, attribute, bytes, sizeof(value)),
      "cublasLtMatmulDescSetAttribute");
}

Status CublasLtPlan::makeDescriptors() {
  GRADC_RETURN_IF_ERROR(
      check(library_.functions().MatmulDescCreate(&descriptor_, shape_.compute, DataType::f32),
            "cublasLtMatmulDescCreate"));
  GRADC_RETURN_IF_ERROR(set(matmulTransposeA, int32_t(shape_.first.transpose)));
  GRADC_RETURN_IF_ERROR(set(matmulTransposeB, int32_t(shape_.second.transpose)));
  if (shape_.epilogue != epilogueDefault) {
    GRADC_RETURN_IF_ERROR(set(matmulEpilogue, uint32_t(shape_.epilogue)));
    if (shape_.biasType)
      GRADC_RETURN_IF_ERROR(set(matmulBiasType, int32_t(*shape_.biasType)));
    if (shape_.auxStride != 0)
      GRADC_RETURN_IF_ERROR(set(matmulAuxStride, shape_.auxStride));
  }
  GRADC_RETURN_IF_ERROR(makeLayout(first_, shape_.first));
  GRADC_RETURN_IF_ERROR(makeLayout(second_, shape_.second));
  return makeLayout(result_, shape_.result);
}

Status CublasLtPlan::makeLayout(MatrixLayout &layout, const CublasLtMatrix &matrix) {
  const Functions &functions = library_.functions();
  GRADC_RETURN_IF_ERROR(
      check(functions.MatrixLayoutCreate(&layout, matrix.type, uint64_t(matrix.rows),
                                         uint64_t(matrix.columns), matrix.stride),
            "cublasLtMatrixLayoutCreate"));
  if (shape_.batch == 1)
    return {};
  auto count = int32_t(shape_.batch);
  GRADC_RETURN_IF_ERROR(
      check(functions.MatrixLayoutSetAttribute(layout, layoutBatchCount, &count, sizeof(count)),
            "cublasLtMatrixLayoutSetAttribute"));
  return check(functions.MatrixLayoutSetAttribute(layout, layoutBatchStride, &matrix.batchStride,
                                                  sizeof(matrix.batchStride)),
               "cublasLtMatrixLayoutSetAttribute");
}

Status CublasLtPlan::setPointers(const GemmAddresses &addresses) {
  if (shape_.scaled) {
    GRADC_RETURN_IF_ERROR(set(matmulScaleAPointer, addresses.scaleB));
    GRADC_RETURN_IF_ERROR(set(matmulScaleBPointer, addresses.scaleA));
  }
  if (addresses.bias)
    GRADC_RETURN_IF_ERROR(set(matmulBiasPointer, addresses.bias));
  if (addresses.aux)
    GRADC_RETURN_IF_ERROR(set(matmulAuxPointer, addresses.aux));
  return {};
}

Expected<std::vector<HeuristicResult>> CublasLtPlan::candidates(const GemmAddresses &addresses,
                                                                int count) {
  GRADC_RETURN_IF_ERROR(setPointers(addresses));
  SearchPreference preference(library_.functions());
  // Found for all products of the shape: what is left wherever their workspaces begin.
  auto most = size_t(shape_.workspaceBytes);
  size_t workspace = most > workspaceAlignment ? most - workspaceAlignment : 0;
  GRADC_RETURN_IF_ERROR(
      check(preference.make(shape_, workspace), "cublasLtMatmulPreferenceSetAttribute"));
  std::vector<HeuristicResult> results(static_cast<size_t>(count));
  int found = 0;
  cublaslt::Result status = library_.functions().MatmulAlgoGetHeuristic(
      handle_, descriptor_, first_, second_, result_, result_, preference.preference, count,
      results.data(), &found);
  if (status != statusNotSupported) // which is said of a product that no algorithm is for
    GRADC_RETURN_IF_ERROR(check(status, "cublasLtMatmulAlgoGetHeuristic"));
  results.resize(status == statusSuccess ? size_t(found) : 0);
  std::erase_if(results,
                [](const HeuristicResult &result) { return result.state != statusSuccess; });
  if (results.empty())
    return Status::machine(
        fmt::format("cuBLASLt {} has no algorithm for {}; install a newer one, or compile with "
                    "another --precision",
                    library_.version(), shape_.text()));
  return results;
}

Status CublasLtPlan::run(const GemmAddresses &addresses, Stream stream) {
  GRADC_RETURN_IF_ERROR(setPointers(addresses));
  const float alpha = 1, beta = shape_.accumulates ? 1 : 0;
  auto [workspace, bytes] = alignedWorkspace(addresses.workspace, shape_.workspaceBytes);
  return check(library_.functions().Matmul(handle_, descriptor_, &alpha, addresses.b, first_,
                                           addresses.a, second_, &beta, addresses.c, result_,
                                           addresses.c, result_, &algorithm_, workspace, bytes,
                                           stream),
               "cublasLtMatmul");
}

} // namespace gradc::rt

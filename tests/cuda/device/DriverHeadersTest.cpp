// Our declarations of the driver's functions and constants against cuda.h, where there is one.
#include <gtest/gtest.h>

#include "runtime/cuda/DriverApi.h"

#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL 1 // functions under the names that the library has them by
#include <cuda.h>

#include <type_traits>

namespace gradc::rt::cuda {
namespace {

/// A pointer for a pointer, and a number for a number of its size.
template <typename Ours, typename Theirs>
constexpr bool agree =
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
template <typename... Ours, typename... Theirs>
constexpr bool functionsAgree(Result (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs))
    return (agree<Ours, Theirs> && ...);
  return false;
}

#define GRADC_CUDA(name, symbol, parameters)                                                       \
  static_assert(functionsAgree(static_cast<Result(*) parameters>(nullptr), &::symbol));
#include "runtime/cuda/DriverApi.def"
#undef GRADC_CUDA

static_assert(int(success) == CUDA_SUCCESS);
static_assert(int(errorInvalidValue) == CUDA_ERROR_INVALID_VALUE);
static_assert(int(errorOutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(int(errorNoDevice) == CUDA_ERROR_NO_DEVICE);
static_assert(int(errorInvalidImage) == CUDA_ERROR_INVALID_IMAGE);
static_assert(int(errorInvalidContext) == CUDA_ERROR_INVALID_CONTEXT);
static_assert(int(errorNoBinaryForGpu) == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(int(errorInvalidPtx) == CUDA_ERROR_INVALID_PTX);
static_assert(int(errorInvalidHandle) == CUDA_ERROR_INVALID_HANDLE);
static_assert(int(errorNotFound) == CUDA_ERROR_NOT_FOUND);
static_assert(int(errorIllegalAddress) == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(int(errorStreamCaptureUnsupported) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(int(errorStreamCaptureInvalidated) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(int(errorStreamCaptureUnjoined) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
static_assert(int(errorStreamCaptureIsolation) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(int(errorUnknown) == CUDA_ERROR_UNKNOWN);
static_assert(int(capabilityMajor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(int(capabilityMinor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(int(maxDynamicSharedBytes) == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(int(jitErrorLog) == CU_JIT_ERROR_LOG_BUFFER);
static_assert(int(jitErrorLogBytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(int(captureThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(streamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(eventDefault == CU_EVENT_DEFAULT);
static_assert(eventWithoutTimes == CU_EVENT_DISABLE_TIMING);
static_assert(eventRecordExternal == CU_EVENT_RECORD_EXTERNAL);
static_assert(sizeof(Address) == sizeof(CUdeviceptr));

TEST(DriverHeaders, AgreeWithOurDeclarations) {
  // It is compiled: the assertions above held.
  EXPECT_GE(CUDA_VERSION, 12000);
}

} // namespace
} // namespace gradc::rt::cuda
#else
TEST(DriverHeaders, AgreeWithOurDeclarations) {
  GTEST_SKIP() << "there is no cuda.h here to compare with";
}
#endif

// The driver's functions: errors, the GPU, its context.
#include "tests/cuda/FakeDriver/Calls.h"

#include <cstring>

namespace {

const char *nameOf(Result result) {
  switch (result) {
  case success:
    return "CUDA_SUCCESS";
  case errorInvalidValue:
    return "CUDA_ERROR_INVALID_VALUE";
  case errorOutOfMemory:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case errorNoDevice:
    return "CUDA_ERROR_NO_DEVICE";
  case errorInvalidImage:
    return "CUDA_ERROR_INVALID_IMAGE";
  case errorInvalidContext:
    return "CUDA_ERROR_INVALID_CONTEXT";
  case errorNoBinaryForGpu:
    return "CUDA_ERROR_NO_BINARY_FOR_GPU";
  case errorInvalidPtx:
    return "CUDA_ERROR_INVALID_PTX";
  case errorInvalidHandle:
    return "CUDA_ERROR_INVALID_HANDLE";
  case errorNotFound:
    return "CUDA_ERROR_NOT_FOUND";
  case errorIllegalAddress:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case errorStreamCaptureUnsupported:
    return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
  case errorStreamCaptureInvalidated:
    return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
  case errorStreamCaptureUnjoined:
    return "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
  case errorStreamCaptureIsolation:
    return "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
  default:
    return nullptr;
  }
}

} // namespace

extern "C" {

Result cuGetErrorName(Result result, const char **name) {
  *name = nameOf(result);
  return *name ? success : errorInvalidValue;
}
Result cuGetErrorString(Result result, const char **text) {
  *text = nameOf(result) ? "as the fake driver has it" : nullptr;
  return *text ? success : errorInvalidValue;
}

// --- the GPU

Result cuInit(unsigned flags) {
  ENTER(cuInit);
  return flags == 0 ? success : errorInvalidValue;
}
Result cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount);
  *count = machine().capability != 0 ? 1 : 0;
  return success;
}
Result cuDeviceGet(DeviceNumber *device, int ordinal) {
  ENTER(cuDeviceGet);
  NEED(ordinal == 0, errorInvalidValue);
  *device = 7; // not its ordinal
  return success;
}
Result cuDeviceGetName(char *name, int bytes, DeviceNumber device) {
  ENTER(cuDeviceGetName);
  NEED(device == 7 && bytes > 0, errorInvalidValue);
  std::strncpy(name, machine().name.c_str(), std::size_t(bytes)); // without a NUL where too long
  return success;
}
Result cuDeviceGetAttribute(int *value, DeviceAttribute attribute, DeviceNumber device) {
  ENTER(cuDeviceGetAttribute);
  NEED(device == 7, errorInvalidValue);
  NEED(attribute == capabilityMajor || attribute == capabilityMinor, errorInvalidValue);
  *value = attribute == capabilityMajor ? machine().capability / 10 : machine().capability % 10;
  return success;
}
Result cuDevicePrimaryCtxRetain(Context *context, DeviceNumber device) {
  ENTER(cuDevicePrimaryCtxRetain);
  NEED(device == 7, errorInvalidValue);
  ++machine().retained;
  *context = &machine().context;
  return success;
}
Result cuDevicePrimaryCtxRelease_v2(DeviceNumber device) {
  Result told = machine().enter("cuDevicePrimaryCtxRelease_v2");
  NEED(device == 7 && machine().retained > 0, errorInvalidValue);
  --machine().retained;
  return told;
}
Result cuCtxSetCurrent(Context context) {
  ENTER(cuCtxSetCurrent);
  NEED(!context || (context == &machine().context && machine().retained > 0), errorInvalidContext);
  machine().isCurrent = context != nullptr;
  return success;
}

} // extern "C"

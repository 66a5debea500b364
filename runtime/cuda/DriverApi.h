// The types and constants of CUDA's driver that DriverApi.def needs, declared anew: no toolkit
// takes part in a build. tests/cuda compares them with cuda.h where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gradc::rt::cuda {

using Result = int;                 // CUresult
using DeviceNumber = int;           // CUdevice
using Address = unsigned long long; // CUdeviceptr

struct ContextObject;
struct StreamObject;
struct EventObject;
struct GraphObject;
struct GraphExecObject;
struct ModuleObject;
struct FunctionObject;
using Context = ContextObject *;
using Stream = StreamObject *;
using Event = EventObject *;
using Graph = GraphObject *;
using GraphExec = GraphExecObject *;
using Module = ModuleObject *;
using Function = FunctionObject *;

enum : Result {
  success = 0,
  errorInvalidValue = 1,
  errorOutOfMemory = 2,
  errorNoDevice = 100,
  errorInvalidImage = 200,
  errorInvalidContext = 201,
  errorNoBinaryForGpu = 209,
  errorInvalidPtx = 218,
  errorInvalidHandle = 400,
  errorNotFound = 500,
  errorIllegalAddress = 700,
  errorStreamCaptureUnsupported = 900,
  errorStreamCaptureInvalidated = 901,
  errorStreamCaptureUnjoined = 904,
  errorStreamCaptureIsolation = 905,
  errorUnknown = 999,
};

enum DeviceAttribute : int {
  capabilityMajor = 75,
  capabilityMinor = 76,
};

enum FunctionAttribute : int {
  maxDynamicSharedBytes = 8,
};

enum JitOption : int {
  jitErrorLog = 5,
  jitErrorLogBytes = 6,
};

enum CaptureMode : int {
  captureThreadLocal = 1,
};

inline constexpr unsigned streamNonBlocking = 1; // does not wait for the legacy stream
inline constexpr unsigned eventDefault = 0;      // with times
inline constexpr unsigned eventWithoutTimes = 2;
inline constexpr unsigned eventRecordExternal = 1; // a node of the graph that is captured

} // namespace gradc::rt::cuda

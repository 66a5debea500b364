// The driver's functions, as DriverApi.def has them.
#include "tests/cuda/FakeDriver/Machine.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace gradc::rt::cuda;
using gradc::rt::cuda::fake::Machine;

namespace {

Machine &machine() { return Machine::get(); }

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
  default:
    return nullptr;
  }
}

/// Takes an object out of a set; false where it is not there.
template <typename Set, typename T> bool take(Set &set, T object) {
  auto found = std::find(set.begin(), set.end(), object);
  if (found == set.end())
    return false;
  set.erase(found);
  return true;
}

/// Release of an object: it is gone even where the call is told to fail.
template <typename Set, typename T> Result releaseFrom(Set &set, T *object, Result told) {
  if (!take(set, object))
    return machine().complain(errorInvalidHandle, "an object is released that does not exist");
  delete object;
  return told;
}

Result queueWork(Stream stream, std::function<Result()> work) {
  return machine().queue(stream, {Operation::Kind::work, std::move(work), nullptr, 0});
}

bool inRange(Address address, std::size_t bytes) { return machine().reachOf(address) >= bytes; }

} // namespace

// What every function begins with; `need` adds that a context is current and no error stuck.
#define ENTER(symbol)                                                                              \
  if (Result told = machine().enter(#symbol); told != success)                                     \
  return told
#define ENTER_READY(symbol)                                                                        \
  ENTER(symbol);                                                                                   \
  if (Result result = machine().ready(); result != success)                                        \
  return result
#define NEED(condition, result)                                                                    \
  if (!(condition))                                                                                \
  return result
#define NEED_NO_CAPTURE()                                                                          \
  if (Result result = machine().refuseInCapture(); result != success)                              \
  return result

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
  *count = machine().capability > 0 ? 1 : 0;
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
  std::strncpy(name, "Fake GPU", std::size_t(bytes - 1));
  name[bytes - 1] = 0;
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

// --- memory

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER_READY(cuMemGetInfo_v2);
  *free = *total = machine().memoryBytes;
  return success;
}
Result cuMemAlloc_v2(Address *address, size_t bytes) {
  ENTER_READY(cuMemAlloc_v2);
  NEED_NO_CAPTURE();
  return machine().allocate(address, bytes);
}
Result cuMemFree_v2(Address address) {
  Result told = machine().enter("cuMemFree_v2");
  NEED_NO_CAPTURE();
  Result released = machine().release(address);
  return released == success ? told : released;
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER_READY(cuMemHostAlloc);
  NEED_NO_CAPTURE();
  NEED(bytes > 0 && flags == 0, errorInvalidValue);
  auto *bytesOf = new std::byte[bytes];
  std::memset(bytesOf, 0xFF, bytes);
  machine().pinned[bytesOf] = bytes;
  *memory = bytesOf;
  return success;
}
Result cuMemFreeHost(void *memory) {
  Result told = machine().enter("cuMemFreeHost");
  auto found = machine().pinned.find(static_cast<std::byte *>(memory));
  NEED(found != machine().pinned.end(), errorInvalidValue);
  for (Stream stream : machine().streams)
    if (!stream->queue.empty())
      machine().complain(success, "pinned memory is freed while work is queued");
  delete[] found->first;
  machine().pinned.erase(found);
  return told;
}
Result cuMemsetD32Async(Address address, unsigned value, size_t count, Stream stream) {
  ENTER_READY(cuMemsetD32Async);
  NEED(count == 0 || (address % 4 == 0 && inRange(address, count * 4)), errorInvalidValue);
  return queueWork(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(address), count, value);
    return Result(success);
  });
}
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyHtoDAsync_v2);
  NEED(inRange(to, bytes), errorInvalidValue);
  if (!machine().isPinned(from, bytes))
    return machine().complain(errorInvalidValue, "an asynchronous copy from pageable memory");
  auto hash = XXH3_64bits(from, bytes);
  return queueWork(stream, [=] {
    if (XXH3_64bits(from, bytes) != hash)
      return machine().complain(errorUnknown, "memory changed before it was copied to the GPU");
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
    return Result(success);
  });
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyDtoHAsync_v2);
  NEED(inRange(from, bytes), errorInvalidValue);
  if (!machine().isPinned(to, bytes))
    return machine().complain(errorInvalidValue, "an asynchronous copy to pageable memory");
  std::memset(to, 0xFF, bytes); // NaN to whoever reads too early
  return queueWork(stream, [=] {
    std::memcpy(to, reinterpret_cast<const void *>(from), bytes);
    return Result(success);
  });
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream stream) {
  ENTER_READY(cuMemcpyDtoDAsync_v2);
  NEED(inRange(to, bytes) && inRange(from, bytes), errorInvalidValue);
  NEED(to + bytes <= from || from + bytes <= to, errorInvalidValue);
  return queueWork(stream, [=] {
    std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return Result(success);
  });
}

// --- streams and events

Result cuStreamCreate(Stream *stream, unsigned flags) {
  ENTER_READY(cuStreamCreate);
  NEED(flags <= 1, errorInvalidValue);
  machine().streams.push_back(*stream = new StreamObject);
  return success;
}
Result cuStreamDestroy_v2(Stream stream) {
  Result told = machine().enter("cuStreamDestroy_v2");
  return releaseFrom(machine().streams, stream, told);
}
Result cuStreamSynchronize(Stream stream) {
  ENTER_READY(cuStreamSynchronize);
  NEED_NO_CAPTURE();
  return machine().drain(stream);
}
Result cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  ENTER_READY(cuStreamWaitEvent);
  NEED(machine().events.count(event) && flags == 0, errorInvalidHandle);
  return machine().queue(stream, {Operation::Kind::wait, nullptr, event, event->recorded});
}
Result cuEventCreate(Event *event, unsigned flags) {
  ENTER_READY(cuEventCreate);
  NEED(flags == eventDefault || flags == eventWithoutTimes, errorInvalidValue);
  machine().events.insert(*event = new EventObject{flags == eventDefault});
  return success;
}
Result cuEventDestroy_v2(Event event) {
  Result told = machine().enter("cuEventDestroy_v2");
  return releaseFrom(machine().events, event, told);
}
Result cuEventRecord(Event event, Stream stream) {
  ENTER_READY(cuEventRecord);
  NEED(machine().events.count(event), errorInvalidHandle);
  event->stream = stream;
  return machine().queue(stream, {Operation::Kind::record, nullptr, event, ++event->recorded});
}
Result cuEventSynchronize(Event event) {
  ENTER_READY(cuEventSynchronize);
  NEED(machine().events.count(event), errorInvalidHandle);
  return machine().reach(event, event->recorded);
}
Result cuEventElapsedTime(float *milliseconds, Event begin, Event end) {
  ENTER_READY(cuEventElapsedTime);
  for (Event event : {begin, end}) {
    NEED(machine().events.count(event) && event->hasTimes && event->recorded > 0,
         errorInvalidHandle);
    NEED(event->done == event->recorded, errorInvalidValue);
  }
  *milliseconds = float(end->milliseconds - begin->milliseconds);
  return success;
}

// --- graphs

Result cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  ENTER_READY(cuStreamBeginCapture_v2);
  NEED(!stream->capture, errorInvalidValue);
  machine().graphs.insert(stream->capture = new GraphObject);
  return success;
}
Result cuStreamEndCapture(Stream stream, Graph *graph) {
  Result told = machine().enter("cuStreamEndCapture");
  *graph = nullptr;
  NEED(stream->capture, errorInvalidValue);
  Graph captured = std::exchange(stream->capture, nullptr);
  if (std::exchange(stream->captureBroken, false) || told != success) {
    (void)releaseFrom(machine().graphs, captured, success);
    return told != success ? told : Result(errorStreamCaptureInvalidated);
  }
  *graph = captured;
  return success;
}
Result cuGraphInstantiateWithFlags(GraphExec *executable, Graph graph, unsigned long long flags) {
  ENTER_READY(cuGraphInstantiateWithFlags);
  NEED(machine().graphs.count(graph) && flags == 0, errorInvalidHandle);
  machine().executables.insert(*executable = new GraphExecObject{graph->operations});
  return success;
}
Result cuGraphLaunch(GraphExec executable, Stream stream) {
  ENTER_READY(cuGraphLaunch);
  NEED(machine().executables.count(executable), errorInvalidHandle);
  for (const Operation &operation : executable->operations)
    if (Result result = machine().queue(stream, operation); result != success)
      return result;
  return success;
}
Result cuGraphDestroy(Graph graph) {
  Result told = machine().enter("cuGraphDestroy");
  return releaseFrom(machine().graphs, graph, told);
}
Result cuGraphExecDestroy(GraphExec executable) {
  Result told = machine().enter("cuGraphExecDestroy");
  return releaseFrom(machine().executables, executable, told);
}

// --- modules

/// The error log's buffer and its size; no other option is known.
static Result readOptions(unsigned count, const JitOption *options, void **values,
                          std::pair<char *, std::size_t> &log) {
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == jitErrorLog)
      log.first = static_cast<char *>(values[i]);
    else if (options[i] == jitErrorLogBytes)
      log.second = reinterpret_cast<std::size_t>(values[i]);
    else
      return errorInvalidValue;
  }
  return success;
}

static Result checkPtx(std::string_view text, std::pair<char *, std::size_t> log) {
  std::size_t target = text.find(".target sm_");
  if (!text.starts_with("//") || target == std::string_view::npos)
    return errorInvalidPtx;
  int capability = std::atoi(text.data() + target + std::strlen(".target sm_"));
  if (capability <= machine().capability)
    return success;
  if (log.first && log.second > 0)
    fmt::format_to_n(log.first, log.second - 1, "this PTX needs an sm_{}\nand more\n", capability);
  return errorNoBinaryForGpu;
}

/// An ELF file as ptxas writes it: its size by the section table, which comes last but one.
static std::size_t cubinBytes(const char *image) {
  uint64_t sections = 0, programs = 0;
  uint16_t sectionBytes = 0, sectionCount = 0, programBytes = 0, programCount = 0;
  std::memcpy(&programs, image + 32, 8);
  std::memcpy(&sections, image + 40, 8);
  std::memcpy(&programBytes, image + 54, 2);
  std::memcpy(&programCount, image + 56, 2);
  std::memcpy(&sectionBytes, image + 58, 2);
  std::memcpy(&sectionCount, image + 60, 2);
  return std::max<std::size_t>(sections + std::size_t(sectionBytes) * sectionCount,
                               programs + std::size_t(programBytes) * programCount);
}

Result cuModuleLoadDataEx(Module *module, const void *image, unsigned count, JitOption *options,
                          void **values) {
  ENTER_READY(cuModuleLoadDataEx);
  NEED_NO_CAPTURE();
  std::pair<char *, std::size_t> log{};
  if (Result result = readOptions(count, options, values, log); result != success)
    return result;
  const char *bytes = static_cast<const char *>(image);
  bool isCubin = std::memcmp(bytes,
                             "\x7f"
                             "ELF",
                             4) == 0;
  NEED(!isCubin || !machine().refusesCubins, errorInvalidImage);
  std::string text(bytes, isCubin ? cubinBytes(bytes) : std::strlen(bytes));
  if (!isCubin)
    if (Result result = checkPtx(text, log); result != success)
      return result;
  machine().modules.insert(*module = new ModuleObject{std::move(text), isCubin, {}});
  return success;
}
Result cuModuleUnload(Module module) {
  Result told = machine().enter("cuModuleUnload");
  if (machine().modules.count(module))
    for (Function function : module->functions)
      delete function;
  return releaseFrom(machine().modules, module, told);
}
Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  ENTER_READY(cuModuleGetFunction);
  NEED(machine().modules.count(module), errorInvalidHandle);
  std::string marker =
      module->isCubin ? fmt::format(".text.{}", name) + '\0' : fmt::format(".entry {}(", name);
  NEED(module->image.find(marker) != std::string::npos, errorNotFound);
  const fake::KnownKernel *kernel = fake::findKernel(name);
  if (!kernel)
    return machine().complain(errorNotFound, fmt::format("no emulated kernel {}", name));
  module->functions.insert(*function = new FunctionObject{name, kernel->gpu, kernel->partBuffers});
  return success;
}
Result cuFuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
  ENTER_READY(cuFuncSetAttribute);
  NEED(attribute == maxDynamicSharedBytes && value >= 0 && value <= 227 << 10, errorInvalidValue);
  function->maxDynamicShared = value;
  return success;
}
Result cuLaunchKernel(Function function, unsigned gridX, unsigned gridY, unsigned gridZ,
                      unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,
                      Stream stream, void **parameters, void **extra) {
  ENTER_READY(cuLaunchKernel);
  bool known = std::any_of(machine().modules.begin(), machine().modules.end(),
                           [&](Module module) { return module->functions.count(function); });
  NEED(known, errorInvalidHandle);
  NEED(gridX > 0 && gridX <= 0x7fffffff && gridY == 1 && gridZ == 1, errorInvalidValue);
  NEED(blockX == function->kernel->threads && blockY == 1 && blockZ == 1, errorInvalidValue);
  NEED(!extra && int(shared) <= function->maxDynamicShared, errorInvalidValue);
  std::vector<Address> buffers(std::size_t(function->kernel->emulated->bufferCount));
  for (std::size_t i = 0; i < buffers.size(); ++i)
    buffers[i] = *static_cast<Address *>(parameters[i]);
  int64_t extent = *static_cast<int64_t *>(parameters[buffers.size()]);
  FunctionObject copy = *function;
  return queueWork(stream,
                   [=] { return machine().launch(copy, gridX, blockX, shared, buffers, extent); });
}

int gradcFakeQueue(void *stream, int (*work)(const void *), const void *data,
                   unsigned long long bytes) {
  if (Result result = machine().ready(); result != success)
    return result;
  std::vector<char> copy(static_cast<const char *>(data), static_cast<const char *>(data) + bytes);
  return queueWork(static_cast<Stream>(stream), [=] { return work(copy.data()); });
}

} // extern "C"

// Every function of DriverApi.def is defined above, as it is declared there.
#define GRADC_CUDA(name, symbol, parameters)                                                       \
  static_assert(std::is_same_v<decltype(&symbol), Result(*) parameters>);
#include "runtime/cuda/DriverApi.def"
#undef GRADC_CUDA

// Driver: loads the library and finds its functions.
#include "runtime/cuda/Driver.h"

#include <string_view>
#include <type_traits>

#include <fmt/format.h>

namespace gradc::rt::cuda {

static constexpr const char *pathVariable = "GRADC_LIBCUDA";

Expected<std::unique_ptr<Driver>> Driver::load() {
  GRADC_ASSIGN_OR_RETURN(
      auto library,
      DynamicLibrary::open({"libcuda.so.1"}, pathVariable,
                           "install NVIDIA's driver, or compile with --emulate to run without a "
                           "GPU"));
  std::unique_ptr<Driver> driver(new Driver(std::move(library)));
  GRADC_RETURN_IF_ERROR(driver->resolve());
  GRADC_RETURN_IF_ERROR(driver->init(0));
  return driver;
}

Status Driver::resolve() {
  const char *missing = nullptr;
  auto find = [&](const char *symbol, auto &call) {
    using Pointer = std::remove_reference_t<decltype(call.function_)>;
    call.function_ = reinterpret_cast<Pointer>(library_.find(symbol));
    call.symbol_ = symbol;
    call.driver_ = this;
    if (!call.function_ && !missing)
      missing = symbol;
  };
#define GRADC_CUDA(name, symbol, parameters) find(#symbol, name);
#include "runtime/cuda/DriverApi.def"
#undef GRADC_CUDA
  if (!missing)
    return Status();
  return Status::machine(
      fmt::format("{} has no function {}, so it is no driver of CUDA 12 or later: {}",
                  library_.name(), missing, DynamicLibrary::mendOf(pathVariable, "install one")));
}

Status Driver::failure(Result result, const char *symbol) const {
  const char *name = nullptr, *text = nullptr;
  if (getErrorName.raw(result, &name) != success || !name)
    name = "an error without a name";
  if (getErrorString.raw(result, &text) != success || !text)
    text = "no text";
  std::string_view call = symbol;
  if (std::size_t version = call.rfind("_v"); version != std::string_view::npos)
    call = call.substr(0, version);
  return Status::machine(fmt::format("{} failed: {} ({})", call, name, text));
}

Expected<Owned<Stream>> createStream(const Driver &driver) {
  Stream stream = nullptr;
  GRADC_RETURN_IF_ERROR(driver.streamCreate(&stream, streamNonBlocking));
  return Owned<Stream>(driver.streamDestroy, stream);
}

Expected<Owned<Event>> createEvent(const Driver &driver, unsigned flags) {
  Event event = nullptr;
  GRADC_RETURN_IF_ERROR(driver.eventCreate(&event, flags));
  return Owned<Event>(driver.eventDestroy, event);
}

Expected<Owned<void *>> createPinned(const Driver &driver, std::size_t bytes) {
  void *memory = nullptr;
  GRADC_RETURN_IF_ERROR(driver.memHostAlloc(&memory, bytes, 0));
  return Owned<void *>(driver.memFreeHost, memory);
}

} // namespace gradc::rt::cuda

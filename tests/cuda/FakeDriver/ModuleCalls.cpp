// The driver's functions: modules and launches.
#include "tests/cuda/FakeDriver/Calls.h"

#include <cstring>
#include <string_view>

#include <fmt/format.h>

using gradc::rt::cuda::fake::releaseFrom;
namespace fake = gradc::rt::cuda::fake;

extern "C" {

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
/// What a block may ask for is less by its static shared memory.
static int mostDynamicShared(const FunctionObject &function) {
  int capability = machine().capability;
  int kilobytes = capability == 80 ? 163 : capability < 90 ? 99 : 227;
  return (kilobytes << 10) - int(function.kernel->emulated->staticSharedBytes);
}
Result cuFuncSetAttribute(Function function, FunctionAttribute attribute, int value) {
  ENTER_READY(cuFuncSetAttribute);
  NEED(attribute == maxDynamicSharedBytes && value >= 0 && value <= mostDynamicShared(*function),
       errorInvalidValue);
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

} // extern "C"

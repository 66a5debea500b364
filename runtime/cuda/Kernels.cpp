// See Kernels.h.
#include "runtime/cuda/Kernels.h"

#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/cpu/Arena.h"

namespace gradc::rt::cuda {
namespace {

/// Machine code runs on GPUs of its major version that are not older, PTX on all that are not.
bool isFor(const GradcImage &image, int capability) {
  if (image.kind == GRADC_CUBIN)
    return image.capability / 10 == capability / 10 && image.capability <= capability;
  return image.capability <= capability;
}

/// The first line of what the assembler said.
std::string_view firstLine(std::string_view log) { return log.substr(0, log.find('\n')); }

Expected<Owned<Module>> loadImage(const Driver &driver, const GradcImage &image) {
  std::array<char, 4096> log{};
  JitOption options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Module module = nullptr;
  Status status = driver.moduleLoadDataEx(&module, image.data, 2, options, values);
  if (status.ok())
    return Owned<Module>(driver.moduleUnload, module);
  log.back() = 0;
  std::string_view said = firstLine(log.data());
  return status.during(fmt::format("loading the kernels' {} for sm_{}{}{}",
                                   image.kind == GRADC_CUBIN ? "cubin" : "PTX", image.capability,
                                   said.empty() ? "" : ": ", said));
}

} // namespace

Status Kernels::check(const Gpu &gpu, const GradcImages &images) {
  int64_t oldest = 0;
  for (int64_t i = 0; i < images.count; ++i) {
    const GradcImage &image = images.images[i];
    if (isFor(image, gpu.capability))
      return Status();
    if (oldest == 0 || image.capability < oldest)
      oldest = image.capability;
  }
  return Status::machine(
      fmt::format("this executable's kernels are for sm_{} and later, and this machine's {} is an "
                  "sm_{}; compile with --target cuda:sm_{} or an older one",
                  oldest, gpu.name, gpu.capability, gpu.capability));
}

Expected<Kernels> Kernels::load(const GpuContext &context, const GradcImages &images) {
  GRADC_RETURN_IF_ERROR(check(context.gpu(), images));
  Status refused;
  for (int64_t kind : {GRADC_CUBIN, GRADC_PTX})
    for (int64_t i = 0; i < images.count; ++i) {
      const GradcImage &image = images.images[i];
      if (image.kind != kind || !isFor(image, context.gpu().capability))
        continue;
      auto module = loadImage(context.driver(), image);
      if (module.ok())
        return Kernels(context.driver(), std::move(*module));
      refused = module.status();
    }
  return refused;
}

Expected<Function> Kernels::find(const GradcLaunch &launch) {
  auto [entry, isNew] = functions_.try_emplace(launch.gpu, nullptr);
  if (!isNew)
    return entry->second;
  Function function = nullptr;
  Status status = driver_->moduleGetFunction(&function, module_.get(), launch.name);
  // Unasked, a launch may give what the kernel's static shared memory leaves of 48 KB.
  if (status.ok() && launch.gpu->sharedBytes > 0)
    status =
        driver_->funcSetAttribute(function, maxDynamicSharedBytes, int(launch.gpu->sharedBytes))
            .during(fmt::format("asking for {} of shared memory a block (a GPU that has less wants "
                                "a program compiled for it: --target)",
                                formatBytes(launch.gpu->sharedBytes)));
  if (!status.ok()) {
    functions_.erase(entry);
    return status;
  }
  return entry->second = function;
}

} // namespace gradc::rt::cuda

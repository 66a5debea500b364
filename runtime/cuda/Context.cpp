// See Context.h.
#include "runtime/cuda/Context.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gradc::rt::cuda {

namespace {

/// What the driver calls the GPU; another program's word, so it ends up in one line of text.
Expected<std::string> nameOf(const Driver &driver, DeviceNumber number) {
  std::array<char, 256> bytes{};
  GRADC_RETURN_IF_ERROR(driver.deviceGetName(bytes.data(), int(bytes.size()), number));
  bytes.back() = 0;
  std::string name = bytes.data();
  std::replace_if(name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

} // namespace

Expected<Gpu> Gpu::find() {
  GRADC_ASSIGN_OR_RETURN(auto driver, Driver::load());
  return find(*driver);
}

Expected<Gpu> Gpu::find(const Driver &driver) {
  int count = 0, major = 0, minor = 0;
  GRADC_RETURN_IF_ERROR(driver.deviceGetCount(&count));
  if (count < 1)
    return Status::machine("the driver shows no GPU: look at CUDA_VISIBLE_DEVICES, or compile with "
                           "--emulate to run without one");
  Gpu gpu;
  GRADC_RETURN_IF_ERROR(driver.deviceGet(&gpu.number, 0));
  GRADC_ASSIGN_OR_RETURN(gpu.name, nameOf(driver, gpu.number));
  GRADC_RETURN_IF_ERROR(driver.deviceGetAttribute(&major, capabilityMajor, gpu.number));
  GRADC_RETURN_IF_ERROR(driver.deviceGetAttribute(&minor, capabilityMinor, gpu.number));
  if (major < 1 || major > 999 || minor < 0 || minor > 9)
    return Status::machine(fmt::format("the driver gives {} no usable compute capability ({}.{}): "
                                       "install NVIDIA's driver anew",
                                       gpu.name, major, minor));
  gpu.capability = 10 * major + minor;
  return gpu;
}

Expected<std::unique_ptr<GpuContext>> GpuContext::create() {
  GRADC_ASSIGN_OR_RETURN(auto driver, Driver::load());
  std::unique_ptr<GpuContext> context(new GpuContext(std::move(driver)));
  GRADC_RETURN_IF_ERROR(context->open());
  return context;
}

Status GpuContext::open() {
  GRADC_ASSIGN_OR_RETURN(gpu_, Gpu::find(*driver_));
  Context context = nullptr;
  GRADC_RETURN_IF_ERROR(driver_->devicePrimaryCtxRetain(&context, gpu_.number));
  retained_ = true;
  return driver_->ctxSetCurrent(context);
}

GpuContext::~GpuContext() {
  if (!retained_)
    return;
  (void)driver_->ctxSetCurrent.raw(nullptr);
  (void)driver_->devicePrimaryCtxRelease.raw(gpu_.number);
}

} // namespace gradc::rt::cuda

// See Context.h.
#include "runtime/cuda/Context.h"

namespace gradc::rt::cuda {

Expected<std::unique_ptr<GpuContext>> GpuContext::create() {
  GRADC_ASSIGN_OR_RETURN(auto driver, Driver::load());
  std::unique_ptr<GpuContext> context(new GpuContext(std::move(driver)));
  GRADC_RETURN_IF_ERROR(context->open());
  return context;
}

Expected<std::string> GpuContext::deviceName() {
  GRADC_ASSIGN_OR_RETURN(auto driver, Driver::load());
  GpuContext context(std::move(driver));
  GRADC_RETURN_IF_ERROR(context.choose());
  return context.name_;
}

Status GpuContext::choose() {
  int count = 0;
  GRADC_RETURN_IF_ERROR(driver_->deviceGetCount(&count));
  if (count < 1)
    return Status::machine("the driver shows no GPU: look at CUDA_VISIBLE_DEVICES, or compile with "
                           "--emulate to run without one");
  GRADC_RETURN_IF_ERROR(driver_->deviceGet(&device_, 0));
  char name[256] = "";
  GRADC_RETURN_IF_ERROR(driver_->deviceGetName(name, sizeof(name), device_));
  name_ = name;
  return Status();
}

Status GpuContext::open() {
  GRADC_RETURN_IF_ERROR(choose());
  int major = 0, minor = 0;
  GRADC_RETURN_IF_ERROR(driver_->deviceGetAttribute(&major, capabilityMajor, device_));
  GRADC_RETURN_IF_ERROR(driver_->deviceGetAttribute(&minor, capabilityMinor, device_));
  capability_ = 10 * major + minor;
  Context context = nullptr;
  GRADC_RETURN_IF_ERROR(driver_->devicePrimaryCtxRetain(&context, device_));
  retained_ = true;
  return driver_->ctxSetCurrent(context);
}

GpuContext::~GpuContext() {
  if (!retained_)
    return;
  (void)driver_->ctxSetCurrent.raw(nullptr);
  (void)driver_->devicePrimaryCtxRelease.raw(device_);
}

} // namespace gradc::rt::cuda

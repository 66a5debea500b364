// What devices have in common: programs call by call, memory through copies, times by the host.
#include "runtime/Device.h"

#include <new>

#include <fmt/format.h>

#include "runtime/StepAbi.h"

namespace gradc::rt {

Status Device::access(GradcSpace space, int64_t offset, int64_t bytes, Access mode,
                      const std::function<Status(std::byte *)> &use) {
  if (bytes < 0)
    return Status::defect(fmt::format("{} bytes cannot be lent; please report this", bytes));
  std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[std::size_t(bytes)]);
  if (!copy)
    return Status::machine(
        fmt::format("no memory for a copy of {} bytes of the device's memory; free some", bytes));
  if (mode != Access::write)
    GRADC_RETURN_IF_ERROR(read(space, offset, copy.get(), bytes));
  GRADC_RETURN_IF_ERROR(use(copy.get()));
  return mode == Access::read ? Status() : write(space, offset, copy.get(), bytes);
}

Status Device::run(const GradcProgram &program, const LaunchObserver &observe) {
  GradcContext context;
  context.device = this;
  context.observe = observe;
  program.run(&context);
  return context.status;
}

Status Device::time(const std::function<Status()> &work, LaunchTimes &times) {
  times.begin = std::chrono::steady_clock::now();
  GRADC_RETURN_IF_ERROR(work());
  GRADC_RETURN_IF_ERROR(synchronize());
  times.end = std::chrono::steady_clock::now();
  return Status();
}

Status outsideOfSpace(GradcSpace space, int64_t offset, int64_t bytes, int64_t size) {
  return Status::defect(
      fmt::format("{} bytes at offset {} are outside of space {}, which has {}; please report this",
                  bytes, offset, int64_t(space), size));
}

} // namespace gradc::rt

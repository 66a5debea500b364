// The kernels that the fake driver runs: those of a program compiled for the emulator, which are
// found by running its programs on a device that only looks.
#include "tests/cuda/FakeDriver/Machine.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

#include <fmt/format.h>

#include "runtime/StepAbi.h"

namespace gradc::rt::cuda::fake {
namespace {

std::map<std::string, KnownKernel> &kernels() {
  static std::map<std::string, KnownKernel> known;
  return known;
}

class LookingDevice final : public Device {
public:
  Status allocate(const SpaceSizes &) override { return Status(); }
  Status write(GradcSpace, int64_t, const void *, int64_t) override { return Status(); }
  Status read(GradcSpace, int64_t, void *, int64_t) override { return Status(); }
  Status launch(const GradcLaunch &launch, int64_t) override {
    kernels()[launch.name] = {launch.gpu, launch.partCount > 0 ? launch.bufferCount : 0};
    return Status();
  }
  Status gemm(const GradcGemm &, int64_t) override { return Status(); }
  Status synchronize() override { return Status(); }
  Status fillArena() override { return Status(); }
  Expected<int64_t> arenaHighWater() override { return int64_t(0); }
};

bool load() {
  const char *path = std::getenv("GRADC_FAKE_KERNELS");
  if (!path)
    return false;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto *executable =
      static_cast<const GradcExecutable *>(library ? dlsym(library, "gradc_executable") : nullptr);
  if (!executable) {
    fmt::print(stderr, "fake driver: {}: {}\n", path, dlerror());
    return false;
  }
  LookingDevice device;
  for (int64_t i = 0; i < executable->programCount; ++i)
    (void)device.run(executable->programs[i], nullptr);
  return true;
}

} // namespace

const KnownKernel *findKernel(const std::string &name) {
  [[maybe_unused]] static const bool loaded = load();
  auto found = kernels().find(name);
  bool runs = found != kernels().end() && found->second.gpu && found->second.gpu->emulated;
  return runs ? &found->second : nullptr;
}

} // namespace gradc::rt::cuda::fake

void gradcFakeAddKernel(const char *name, const GradcGpuKernel *kernel) {
  gradc::rt::cuda::fake::kernels()[name] = {kernel, 0};
}

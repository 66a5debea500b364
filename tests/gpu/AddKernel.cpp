// The kernel of Conformance.cpp as the fake driver wants it (GRADC_FAKE_KERNELS): a program that
// was compiled for the emulator and launches it.
#include "runtime/Abi.h"
#include "runtime/emulator/Abi.h"

extern "C" void gradc_launch(GradcContext *context, const GradcLaunch *launch);

namespace {

void addThread(void *const *buffers, int64_t, int64_t task) {
  static_cast<float *>(buffers[2])[task] =
      static_cast<const float *>(buffers[0])[task] + *static_cast<const float *>(buffers[1]);
}

const char *const bufferNames[] = {"in", "addend", "out"};
const GradcEmulatedKernel emulatedAdd{addThread, 1, 0, 4, 4, 3, bufferNames};
const GradcGpuKernel addKernel{1, 0, 2, &emulatedAdd};
const GradcLaunch launch{"add", nullptr, &addKernel, 1, 1, 0, nullptr, 0, 0, 0};

void launchAdd(GradcContext *context) { gradc_launch(context, &launch); }
const GradcProgram program{"add", launchAdd};

} // namespace

const GradcExecutable gradc_executable{.abiVersion = GRADC_ABI_VERSION,
                                       .metadata = "",
                                       .metadataBytes = 0,
                                       .constants = nullptr,
                                       .constantBytes = 0,
                                       .programCount = 1,
                                       .programs = &program,
                                       .device = nullptr,
                                       .images = nullptr};

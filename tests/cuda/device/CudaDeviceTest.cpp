// The CUDA device on the stand-ins of NVIDIA's driver and library: under the suite of every device,
// and what it alone does.
#include "tests/runtime/DeviceConformance.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/cuda/CudaDevice.h"
#include "runtime/emulator/Abi.h"

namespace gradc::rt {
namespace {

// --- the kernel of the suite: one thread a block

void addThread(void *const *buffers, int64_t, int64_t task) {
  static_cast<float *>(buffers[2])[task] =
      static_cast<const float *>(buffers[0])[task] + *static_cast<const float *>(buffers[1]);
}
const char *const bufferNames[] = {"in", "addend", "out"};
const GradcEmulatedKernel emulatedAdd{addThread, 1, 0, 4, 4, 3, bufferNames};
const GradcGpuKernel addKernel{1, 0, 2, &emulatedAdd};

const char addPtx[] = "//\n.version 8.0\n.target sm_80\n.visible .entry add(\n)\n";
const GradcImage ptxImage{GRADC_PTX, 80, addPtx, sizeof(addPtx)};
const GradcImages ptxImages{1, &ptxImage};

/// Loads the stand-ins before anything is asked of them.
const bool prepared = [] {
  setenv("GRADC_LIBCUDA", GRADC_FAKE_CUDA, 1);
  setenv("GRADC_CUBLASLT_PATH", GRADC_FAKE_CUBLASLT, 1);
  void *library = dlopen(GRADC_FAKE_CUDA, RTLD_NOW | RTLD_NODELETE);
  auto *add = reinterpret_cast<void (*)(const char *, const GradcGpuKernel *)>(
      library ? dlsym(library, "gradcFakeAddKernel") : nullptr);
  if (add)
    add("add", &addKernel);
  return add != nullptr;
}();

Expected<std::unique_ptr<Device>> create() {
  GRADC_ASSIGN_OR_RETURN(auto device, cuda::CudaDevice::create(ptxImages));
  return std::unique_ptr<Device>(std::move(device));
}

/// The status of making a device for these images.
Status statusWith(std::vector<GradcImage> images) {
  GradcImages list{int64_t(images.size()), images.data()};
  return cuda::CudaDevice::create(list).status();
}

TEST(CudaDevice, TakesTheImageThatIsForItsGpu) {
  ASSERT_TRUE(prepared) << dlerror();
  GradcImage newer = ptxImage;
  newer.capability = 100;
  Status status = statusWith({newer});
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_EQ(status.message(),
            "this executable's kernels are for sm_100 and later, and this machine's Fake GPU is an "
            "sm_90; compile with --target cuda:sm_90 or an older one");
  EXPECT_TRUE(statusWith({newer, ptxImage}).ok());
  // Machine code of another major version is not even tried.
  EXPECT_TRUE(statusWith({{GRADC_CUBIN, 80, "no ELF", 7}, ptxImage}).ok());
}

TEST(CudaDevice, FallsBackToPtxAndSaysWhyNeitherLoads) {
  // A driver may be older than the assembler that made the cubin.
  const GradcImage badCubin{GRADC_CUBIN, 90, "no image", 9};
  EXPECT_TRUE(statusWith({badCubin, ptxImage}).ok());
  Status status = statusWith({badCubin});
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_NE(status.message().find("loading the kernels' cubin for sm_90"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX"),
            std::string::npos)
      << status.message();
  // What the assembler says is told, its first line.
  const char text[] = "//\n.version 8.0\n.target sm_100\n";
  status = statusWith({{GRADC_PTX, 90, text, sizeof(text)}});
  EXPECT_NE(status.message().find("PTX for sm_90: this PTX needs an sm_100: cuModuleLoadDataEx"),
            std::string::npos)
      << status.message();
}

TEST(CudaDevice, SaysWhatItIsCalled) {
  auto peak = gradc_cuda_device.peak(1);
  ASSERT_TRUE(peak.ok()) << peak.status().message();
  EXPECT_EQ(peak->name, "Fake GPU");
  EXPECT_EQ(peak->flopsPerSecond, 0);
}

TEST(CudaDevice, CopiesMoreThanItsStagingHolds) {
  auto device = create();
  ASSERT_TRUE(device.ok());
  constexpr int64_t bytes = 21'000'004; // five halves of the staging memory, the last in part
  ASSERT_TRUE((*device)->allocate({bytes, 64, nullptr, 0}).ok());
  std::vector<uint32_t> out(bytes / 4), in(bytes / 4);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = uint32_t(i * 2654435761u);
  ASSERT_TRUE((*device)->write(GRADC_STATE, 0, out.data(), bytes).ok());
  Status status = (*device)->read(GRADC_STATE, 0, in.data(), bytes);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(in, out);
  // Many small ones, which fill the staging memory several times over.
  constexpr int64_t piece = 100'004;
  for (int64_t at = 0; at + piece <= bytes; at += piece)
    ASSERT_TRUE(
        (*device)->write(GRADC_STATE, at, &out[std::size_t(bytes - at - piece) / 4], piece).ok());
  ASSERT_TRUE((*device)->read(GRADC_STATE, 0, in.data(), bytes).ok());
  for (int64_t at = 0; at + piece <= bytes; at += piece)
    ASSERT_EQ(
        std::memcmp(&in[std::size_t(at) / 4], &out[std::size_t(bytes - at - piece) / 4], piece), 0);
}

TEST(CudaDevice, RefusesALaunchThatIsNotForAGpu) {
  auto device = create();
  ASSERT_TRUE(device.ok());
  ASSERT_TRUE((*device)->allocate({64, 64, nullptr, 0}).ok());
  GradcLaunch launch{"sum", nullptr, nullptr, 1, 2, 0, nullptr, 0, 0, 0};
  Status status = (*device)->launch(launch, 0);
  EXPECT_EQ(status.code(), ExitCode::defect);
  EXPECT_EQ(status.message(), "kernel sum: is not for a GPU; please report this");
  launch.name = "missing";
  launch.gpu = &addKernel;
  status = (*device)->launch(launch, 0);
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_EQ(status.message(),
            "kernel missing: cuModuleGetFunction failed: CUDA_ERROR_NOT_FOUND (as "
            "the fake driver has it)");
}

TEST(DynamicLibrary, SaysWhatWasTriedAndHowToMendIt) {
  auto library =
      DynamicLibrary::open({"libnone.so.1", "libnone.so"}, "GRADC_NO_SUCH", "install it");
  Status status = library.status();
  EXPECT_EQ(status.code(), ExitCode::machineFault);
  EXPECT_NE(status.message().find("libnone.so.1: cannot open"), std::string::npos)
      << status.message();
  EXPECT_TRUE(status.message().ends_with(": install it")) << status.message();
}

TEST(DynamicLibrary, MendsWhatAVariableNames) {
  std::string textFile = testing::TempDir() + "/no-library.so";
  std::ofstream(textFile) << "no ELF";
  for (const std::string &name : {std::string("/nope.so"), textFile}) {
    setenv("GRADC_LIBRARY_OF_TEST", name.c_str(), 1);
    Status status =
        DynamicLibrary::open({"libc.so.6"}, "GRADC_LIBRARY_OF_TEST", "install it").status();
    EXPECT_TRUE(status.message().starts_with(name + ": ")) << status.message();
    EXPECT_TRUE(
        status.message().ends_with(": check GRADC_LIBRARY_OF_TEST, which names it, or unset it"))
        << status.message();
  }
  unsetenv("GRADC_LIBRARY_OF_TEST");
}

} // namespace

std::vector<DeviceUnderTest> devicesUnderTest() { return {{"Cuda", create, nullptr, &addKernel}}; }

} // namespace gradc::rt

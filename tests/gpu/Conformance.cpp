// The suite of every device on a real GPU: the program of bench/gpu/check, which needs a driver,
// cuBLASLt and nothing else. Here it runs on the stand-ins of both (tests/cuda).
#include "tests/runtime/DeviceConformance.h"

#include "runtime/cuda/CudaDevice.h"

namespace gradc::rt {
namespace {

constexpr char addPtx[] =
    R"(// out[task] = in[task] + addend[0]: one thread a block, whose number is the task
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(
  .param .u64 in,
  .param .u64 addend,
  .param .u64 out,
  .param .u64 extent
)
.reqntid 1, 1, 1
{
  .reg .b32 %task;
  .reg .b64 %from, %added, %to, %offset;
  .reg .f32 %x, %y;
  ld.param.u64 %from, [in];
  ld.param.u64 %added, [addend];
  ld.param.u64 %to, [out];
  cvta.to.global.u64 %from, %from;
  cvta.to.global.u64 %added, %added;
  cvta.to.global.u64 %to, %to;
  mov.u32 %task, %ctaid.x;
  mul.wide.u32 %offset, %task, 4;
  add.s64 %from, %from, %offset;
  add.s64 %to, %to, %offset;
  ld.global.f32 %x, [%from];
  ld.global.f32 %y, [%added];
  add.rn.f32 %x, %x, %y;
  st.global.f32 [%to], %x;
  ret;
}
)";
const GradcImage addImage{GRADC_PTX, 80, addPtx, sizeof(addPtx)};
const GradcImages images{1, &addImage};
const GradcGpuKernel addKernel{1, 0, 2, nullptr};

Expected<std::unique_ptr<Device>> create() {
  GRADC_ASSIGN_OR_RETURN(auto device, cuda::CudaDevice::create(images));
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace

std::vector<DeviceUnderTest> devicesUnderTest() { return {{"Gpu", create, nullptr, &addKernel}}; }

} // namespace gradc::rt

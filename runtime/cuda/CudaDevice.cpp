// See CudaDevice.h.
#include "runtime/cuda/CudaDevice.h"

#include <chrono>
#include <cstdlib>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "runtime/Epilogue.h"
#include "runtime/Parts.h"
#include "runtime/checkpoint/StrictJson.h"
#include "runtime/cuda/Ranges.h"

namespace gradc::rt::cuda {
namespace {

/// Whether programs are replayed as graphs: $GRADC_CUDA_GRAPH, on where it is not set.
Expected<bool> wantsGraphs() {
  const char *variable = std::getenv("GRADC_CUDA_GRAPH");
  std::string_view word = variable && *variable ? variable : "on";
  if (word != "on" && word != "off")
    return Status::user(
        fmt::format("GRADC_CUDA_GRAPH: expected on or off, got: {}", printable(word)));
  return word == "on";
}

} // namespace

Expected<std::unique_ptr<CudaDevice>> CudaDevice::create(const GradcImages &images) {
  GRADC_ASSIGN_OR_RETURN(auto context, GpuContext::create());
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(context)));
  GRADC_RETURN_IF_ERROR(device->open(images));
  return device;
}

Status CudaDevice::open(const GradcImages &images) {
  GRADC_ASSIGN_OR_RETURN(Kernels kernels, Kernels::load(*context_, images));
  kernels_ = std::make_unique<Kernels>(std::move(kernels));
  GRADC_ASSIGN_OR_RETURN(compute_, createStream(driver()));
  streams_ = std::make_unique<Streams>(driver(), compute_.get());
  for (Interval *events : {&timed_, &tuned_}) {
    GRADC_ASSIGN_OR_RETURN(events->begin, createEvent(driver(), eventDefault));
    GRADC_ASSIGN_OR_RETURN(events->end, createEvent(driver(), eventDefault));
  }
  GRADC_ASSIGN_OR_RETURN(bool graphs, wantsGraphs());
  if (graphs)
    graphs_ = std::make_unique<Graphs>(driver(), compute_.get());
  return Status();
}

/// Nothing may be released that is still in use.
CudaDevice::~CudaDevice() {
  if (compute_.get())
    (void)driver().streamSynchronize.raw(compute_.get());
}

/// What fails between programs may be the fault of the one that was queued last: where its launches
/// were not waited for, its error shows at the next call that waits.
Status CudaDevice::afterwards(const Status &status) const {
  return last_.empty() ? status : status.during("after " + last_);
}

Status CudaDevice::run(const GradcProgram &program, const LaunchObserver &observe) {
  Range range(program.name);
  Program &known = programs_[&program];
  ++known.runs;
  last_ = fmt::format("{}, run {}", program.name, known.runs);
  std::string where = last_;
  careful_ = known.runs == 1 || !graphs_;
  Status status;
  if (careful_) {
    launches_ = 0;
    status = Device::run(program, observe);
    known.launches = launches_;
    careful_ = false;
  } else {
    status = replay(program, known, observe);
    if (status.ok())
      last_ += " (GRADC_CUDA_GRAPH=off finds the kernel)";
  }
  return status.during(where);
}

Status CudaDevice::replay(const GradcProgram &program, Program &known,
                          const LaunchObserver &observe) {
  Status status;
  if (observe) {
    if (!known.timeline)
      known.timeline = std::make_unique<Timeline>(driver(), compute_.get());
    GRADC_RETURN_IF_ERROR(known.timeline->prepare(known.launches));
    timeline_ = known.timeline.get();
    auto note = [&](const LaunchRecord &launch) { timeline_->add(launch); };
    status = timeline_->run(program, [&] { return Device::run(program, note); }, observe);
    timeline_ = nullptr;
  } else {
    capturing_ = true; // unless there is a graph already
    status = graphs_->launch(program, [&] { return Device::run(program, nullptr); });
    capturing_ = false;
  }
  return status;
}

Status CudaDevice::launch(const GradcLaunch &launch, int64_t iteration) {
  Range range(launch.name);
  Status status = launchKernel(launch, iteration);
  if (status.ok())
    status = waitIfCareful();
  return status.during(fmt::format("kernel {}", launch.name));
}

Status CudaDevice::launchKernel(const GradcLaunch &launch, int64_t iteration) {
  ++launches_;
  if (!launch.gpu)
    return Status::defect("is not for a GPU; please report this");
  if (launch.tasks > std::numeric_limits<int32_t>::max())
    return Status::defect(fmt::format("{} blocks are more than a launch can have; compile with a "
                                      "smaller --micro-batch or --seq",
                                      launch.tasks));
  if (launch.tasks <= 0)
    return Status();
  GRADC_ASSIGN_OR_RETURN(Function function, kernels_->find(launch));
  GRADC_RETURN_IF_ERROR(setParameters(launch, iteration));
  parameters_.clear();
  for (Address &address : addresses_)
    parameters_.push_back(&address);
  parameters_.push_back(&extent_);
  return driver().launchKernel(
      function, unsigned(launch.tasks), 1, 1, unsigned(launch.gpu->threads), 1, 1,
      unsigned(launch.gpu->sharedBytes), streamOf(launch.stream), parameters_.data(), nullptr);
}

Status CudaDevice::setParameters(const GradcLaunch &launch, int64_t iteration) {
  addresses_.clear();
  if (launch.partCount > 0) {
    addresses_.push_back(memory_->resolve(launch.table, iteration));
    extent_ = launch.partCount;
    return writeTable(launch);
  }
  for (int64_t i = 0; i < launch.bufferCount; ++i)
    addresses_.push_back(memory_->resolve(launch.buffers[i], iteration));
  extent_ = launch.extent;
  return Status();
}

/// Before the first launch only, which is none of a graph's.
Status CudaDevice::writeTable(const GradcLaunch &launch) {
  if (tables_.contains(&launch))
    return Status();
  std::vector<int64_t> addresses;
  for (int64_t i = 0; i < launch.partCount * launch.bufferCount; ++i)
    addresses.push_back(int64_t(memory_->resolve(launch.buffers[i], 0)));
  std::vector<int64_t> words = partTable(launch, addresses);
  GRADC_RETURN_IF_ERROR(transfers_->upload(memory_->resolve(launch.table, 0), words.data(),
                                           int64_t(words.size() * sizeof(int64_t))));
  tables_.insert(&launch);
  return Status();
}

Status CudaDevice::gemm(const GradcGemm &gemm, int64_t iteration) {
  Range range(gemm.name);
  Status status = product(gemm, iteration);
  if (status.ok())
    status = waitIfCareful();
  return status.during(fmt::format("product {}", gemm.name));
}

/// Where the product's operands lie, of those that it has.
GemmAddresses CudaDevice::addressesOf(const GradcGemm &gemm, int64_t iteration) const {
  auto address = [&](const GradcBuffer &buffer) {
    return reinterpret_cast<std::byte *>(memory_->resolve(buffer, iteration));
  };
  GemmAddresses addresses;
  addresses.a = address(gemm.a.buffer);
  addresses.b = address(gemm.b.buffer);
  addresses.c = address(gemm.c.buffer);
  if (gemm.scaled) {
    addresses.scaleA = address(gemm.scaleA);
    addresses.scaleB = address(gemm.scaleB);
  }
  EpilogueParts parts = partsOf(gemm.epilogue);
  if (parts.hasBias())
    addresses.bias = address(gemm.bias);
  if (parts.hasAux())
    addresses.aux = address(gemm.aux);
  if (gemm.workspaceBytes > 0)
    addresses.workspace = address(gemm.workspace);
  return addresses;
}

Status CudaDevice::product(const GradcGemm &gemm, int64_t iteration) {
  ++launches_;
  if (!products_) {
    GRADC_ASSIGN_OR_RETURN(products_, CublasLtProducts::create());
    if (tunes_)
      products_->tune(tuningDevice(), context_->gpu().name);
  }
  return products_->run(gemm, addressesOf(gemm, iteration),
                        reinterpret_cast<cublaslt::Stream>(streamOf(gemm.stream)));
}

Stream CudaDevice::streamOf(int64_t number) const {
  return capturing_ ? streams_->get(number) : compute_.get();
}

/// What a capture needs is made before, in the program's first run.
Status CudaDevice::recordEvent(const GradcStreamEvent &event) {
  return capturing_ ? streams_->record(event) : streams_->prepare(event);
}

Status CudaDevice::waitEvent(const GradcStreamEvent &event) {
  return capturing_ ? streams_->wait(event) : streams_->prepare(event);
}

Status CudaDevice::tune() {
  tunes_ = true;
  return Status();
}

std::vector<std::string> CudaDevice::choices() const {
  return products_ ? products_->choices() : std::vector<std::string>();
}

TuningDevice CudaDevice::tuningDevice() {
  TuningDevice device;
  device.seconds = [this](const std::function<Status()> &work) -> Expected<double> {
    LaunchTimes times;
    GRADC_RETURN_IF_ERROR(timeBetween(tuned_, work, times));
    return std::chrono::duration<double>(times.end - times.begin).count();
  };
  device.preserving = [this](std::byte *begin, int64_t bytes, const std::function<Status()> &work) {
    auto address = reinterpret_cast<Address>(begin);
    std::vector<std::byte> copy(static_cast<std::size_t>(bytes));
    GRADC_RETURN_IF_ERROR(transfers_->download(address, copy.data(), bytes));
    GRADC_RETURN_IF_ERROR(work());
    return transfers_->upload(address, copy.data(), bytes);
  };
  return device;
}

Status CudaDevice::waitIfCareful() {
  return careful_ ? driver().streamSynchronize(compute_.get()) : Status();
}

Status CudaDevice::time(const std::function<Status()> &work, LaunchTimes &times) {
  if (!timeline_)
    return timeBetween(timed_, work, times);
  GRADC_RETURN_IF_ERROR(work());
  return timeline_->mark();
}

Status CudaDevice::timeBetween(const Interval &events, const std::function<Status()> &work,
                               LaunchTimes &times) {
  GRADC_RETURN_IF_ERROR(driver().eventRecord(events.begin.get(), compute_.get()));
  GRADC_RETURN_IF_ERROR(work());
  GRADC_RETURN_IF_ERROR(driver().eventRecord(events.end.get(), compute_.get()));
  GRADC_RETURN_IF_ERROR(driver().eventSynchronize(events.end.get()));
  times.end = std::chrono::steady_clock::now();
  float milliseconds = 0;
  GRADC_RETURN_IF_ERROR(
      driver().eventElapsedTime(&milliseconds, events.begin.get(), events.end.get()));
  times.begin = times.end - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<float, std::milli>(milliseconds));
  return Status();
}

Status CudaDevice::synchronize() { return afterwards(driver().streamSynchronize(compute_.get())); }

} // namespace gradc::rt::cuda

namespace {

const GradcImages &imagesOf(const GradcExecutable &executable) {
  static constexpr GradcImages none{0, nullptr};
  return executable.images ? *executable.images : none;
}

gradc::rt::Expected<std::unique_ptr<gradc::rt::Device>>
createDevice(const GradcExecutable &executable, gradc::rt::ThreadPool &) {
  GRADC_ASSIGN_OR_RETURN(auto device, gradc::rt::cuda::CudaDevice::create(imagesOf(executable)));
  return std::unique_ptr<gradc::rt::Device>(std::move(device));
}

/// The name alone: what it reaches is not measured.
gradc::rt::Expected<gradc::rt::DevicePeak> peak(int) {
  GRADC_ASSIGN_OR_RETURN(auto gpu, gradc::rt::cuda::Gpu::find());
  return gradc::rt::DevicePeak{std::move(gpu.name)};
}

gradc::rt::Status find(const GradcExecutable &executable) {
  GRADC_RETURN_IF_ERROR(gradc::rt::cuda::wantsGraphs().status());
  GRADC_ASSIGN_OR_RETURN(auto gpu, gradc::rt::cuda::Gpu::find());
  return gradc::rt::cuda::Kernels::check(gpu, imagesOf(executable));
}

} // namespace

constinit const GradcDeviceKind gradc_cuda_device = {createDevice, peak, find, true};

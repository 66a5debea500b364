// An NVIDIA GPU as a device. A program's first run launches kernel by kernel on one stream and
// waits for each, so that an error names its kernel; later runs replay a CUDA graph, which has the
// program's streams. Copies go on a stream of their own. docs/design/cuda.md.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/Device.h"
#include "runtime/cuda/Context.h"
#include "runtime/cuda/CublasLtProducts.h"
#include "runtime/cuda/Graphs.h"
#include "runtime/cuda/Kernels.h"
#include "runtime/cuda/Memory.h"
#include "runtime/cuda/Streams.h"
#include "runtime/cuda/Timeline.h"
#include "runtime/cuda/Transfers.h"

namespace gradc::rt::cuda {

/// Used by the thread that made it. Every error names the call of the driver that failed, the
/// kernel or program it was made for, and the run of that program.
class CudaDevice final : public Device {
public:
  /// `images` has the kernels of the programs.
  static Expected<std::unique_ptr<CudaDevice>> create(const GradcImages &images);
  ~CudaDevice() override;

  Status allocate(const SpaceSizes &sizes) override;
  Status write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) override;
  Status read(GradcSpace space, int64_t offset, void *data, int64_t bytes) override;
  Status run(const GradcProgram &program, const LaunchObserver &observe) override;
  Status launch(const GradcLaunch &launch, int64_t iteration) override;
  Status gemm(const GradcGemm &gemm, int64_t iteration) override;
  Status recordEvent(const GradcStreamEvent &event) override;
  Status waitEvent(const GradcStreamEvent &event) override;
  Status time(const std::function<Status()> &work, LaunchTimes &times) override;
  Status tune() override;
  std::vector<std::string> choices() const override;
  Status synchronize() override;
  Status fillArena() override;
  Expected<int64_t> arenaHighWater() override;

private:
  /// What is known of a program that ran.
  struct Program {
    int64_t runs = 0;
    int64_t launches = 0; ///< in the first run
    std::unique_ptr<Timeline> timeline;
  };
  struct Interval {
    Owned<Event> begin, end;
  };

  explicit CudaDevice(std::unique_ptr<GpuContext> context) : context_(std::move(context)) {}
  const Driver &driver() const { return context_->driver(); }
  Status open(const GradcImages &images);
  Status launchKernel(const GradcLaunch &launch, int64_t iteration);
  /// Sets addresses_ and, for the kernel's last parameter, extent_.
  Status setParameters(const GradcLaunch &launch, int64_t iteration);
  Status writeTable(const GradcLaunch &launch);
  GemmAddresses addressesOf(const GradcGemm &gemm, int64_t iteration) const;
  Status product(const GradcGemm &gemm, int64_t iteration);
  TuningDevice tuningDevice();
  Status waitIfCareful();
  Status replay(const GradcProgram &program, Program &known, const LaunchObserver &observe);
  Status timeBetween(const Interval &events, const std::function<Status()> &work,
                     LaunchTimes &times);
  /// Of a command of that stream of the program: its own where a run is captured, else compute_.
  Stream streamOf(int64_t number) const;
  Status afterwards(const Status &status) const;

  std::unique_ptr<GpuContext> context_;
  std::unique_ptr<Kernels> kernels_;
  std::unique_ptr<CublasLtProducts> products_; ///< made for the first product
  Owned<Stream> compute_;
  std::unique_ptr<Streams> streams_;
  Interval timed_, tuned_; ///< of a launch, and of an algorithm that is tried in one
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<Graphs> graphs_; ///< null: every run is launch by launch
  std::unordered_map<const GradcProgram *, Program> programs_;
  int64_t launches_ = 0;         ///< in the current run
  Timeline *timeline_ = nullptr; ///< of the run that is captured for an observer
  bool careful_ = false;         ///< wait for each launch
  bool capturing_ = false;       ///< launches become a graph
  bool tunes_ = false;
  std::string last_;                               ///< the program and run that was queued last
  std::unordered_set<const GradcLaunch *> tables_; ///< in parts, whose tables are written
  std::vector<Address> addresses_; ///< of the current launch; kept to allocate nothing in a step
  int64_t extent_ = 0;             ///< of the current launch
  std::vector<void *> parameters_;
};

} // namespace gradc::rt::cuda

extern "C" const GradcDeviceKind gradc_cuda_device;

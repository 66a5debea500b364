// A loaded executable with its memory: slots by name, programs to run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/Init.h"
#include "runtime/Metadata.h"
#include "runtime/StepAbi.h"
#include "runtime/checkpoint/SafetensorsWriter.h"
#include "runtime/cpu/CpuDevice.h"

namespace gradc::rt {

/// For one thread, which has a stack for kernels (runOnKernelStack).
class Session {
public:
  /// Refuses an executable of another ABI version, one whose kernels need instructions this
  /// processor lacks, and one that does not fit the memory. `metadata` is what parseMetadata gave.
  static Expected<std::unique_ptr<Session>> open(const GradcExecutable &executable,
                                                 Metadata metadata, int threads);

  const Metadata &metadata() const { return metadata_; }
  ThreadPool &pool() { return device_->pool(); }
  Arena &arena() { return device_->arena(); }

  bool hasProgram(std::string_view name) const;
  /// Runs a program on what its input and scalar slots hold.
  Status run(std::string_view name);
  /// Calls `observer` after each launch from now on (null: no longer); slows steps a little.
  void observe(std::function<void(const LaunchRecord &)> observer) {
    observer_ = std::move(observer);
  }

  /// Copies into the slot `name`; `bytes` must be its size.
  Status write(std::string_view name, const void *data, int64_t bytes);
  Status read(std::string_view name, void *data, int64_t bytes);
  /// Sets a scalar; one that the program does not have is ignored.
  Status writeScalar(std::string_view name, double value);
  /// A scalar output of either type.
  Expected<double> readScalar(std::string_view name);

  /// Sets every parameter to its initial value and every optimizer slot to zero.
  Status initialiseParameters(InitKind kind, uint64_t seed);
  /// Sets every optimizer slot to zero.
  void clearOptimizer();
  /// Makes the low copies of the parameters anew; call when parameters were written.
  Status refreshLowParameters();

  /// Where a slot of the state, or a gradient, lies; valid as long as the session.
  float *floats(const Slot &slot);
  float *gradient(const Slot &slot);

  /// Parameters under their names; optimizer slots as `optimizer.SLOT/NAME` when asked for;
  /// gradients under their parameters' names, as the program `gradients` left them.
  std::vector<TensorView> parameterViews(bool withOptimizer);
  std::vector<TensorView> gradientViews();

private:
  Session(const GradcExecutable &executable, Metadata metadata, std::unique_ptr<CpuDevice> device)
      : executable_(executable), metadata_(std::move(metadata)), device_(std::move(device)) {}

  const GradcExecutable &executable_;
  Metadata metadata_;
  std::unique_ptr<CpuDevice> device_;
  std::function<void(const LaunchRecord &)> observer_;
};

/// The name under which a checkpoint keeps a slot of the state.
std::string checkpointName(const Slot &slot);

} // namespace gradc::rt

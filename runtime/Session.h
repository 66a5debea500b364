// A loaded executable with its memory: slots by name, programs to run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/Device.h"
#include "runtime/Init.h"
#include "runtime/Metadata.h"
#include "runtime/checkpoint/SafetensorsWriter.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {

/// For one thread, which has a stack for kernels (runOnKernelStack).
class Session {
public:
  /// Refuses an executable of another ABI version, one whose kernels need instructions this
  /// processor lacks, and one that does not fit the memory. `metadata` is what parseMetadata gave.
  static Expected<std::unique_ptr<Session>> open(const GradcExecutable &executable,
                                                 Metadata metadata, int threads);

  const Metadata &metadata() const { return metadata_; }
  ThreadPool &pool() { return *pool_; }
  Device &device() { return *device_; }

  bool hasProgram(std::string_view name) const;
  /// Runs a program on what its input and scalar slots hold. It may still be running when this
  /// returns; whatever reads a slot waits for it.
  Status run(std::string_view name);
  /// Calls `observer` after each launch from now on (null: no longer); slows steps.
  void observe(LaunchObserver observer) { observer_ = std::move(observer); }

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
  Status clearOptimizer();
  /// Makes the low copies of the parameters anew; call when parameters were written.
  Status refreshLowParameters();

  /// Calls `use` with the elements of an f32 slot of the state, as Device::access does.
  Status accessFloats(const Slot &slot, Access mode, const std::function<Status(float *)> &use);
  /// The same of a gradient, to read.
  Status readGradient(const Slot &slot, const std::function<Status(const float *)> &use);

  /// Parameters under their names; optimizer slots as `optimizer.SLOT/NAME` when asked for;
  /// gradients under their parameters' names, as the program `gradients` left them. They read the
  /// device when they are written, tensor by tensor, and end with the session.
  std::vector<TensorView> parameterViews(bool withOptimizer);
  std::vector<TensorView> gradientViews();

private:
  Session(const GradcExecutable &executable, Metadata metadata, std::unique_ptr<ThreadPool> pool,
          std::unique_ptr<Device> device)
      : executable_(executable), metadata_(std::move(metadata)), pool_(std::move(pool)),
        device_(std::move(device)) {}

  const GradcExecutable &executable_;
  Metadata metadata_;
  std::unique_ptr<ThreadPool> pool_; ///< of the host
  std::unique_ptr<Device> device_;
  LaunchObserver observer_;
};

/// The name under which a checkpoint keeps a slot of the state.
std::string checkpointName(const Slot &slot);

} // namespace gradc::rt

// What a step program runs on. The program's calls arrive through runtime/StepAbi.cpp; everything
// behind this interface (the host's cores, an emulated GPU, a real one) is free to run them as it
// likes, as long as their effects appear in program order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/Abi.h"
#include "runtime/Status.h"

namespace gradc::rt {

class ThreadPool;

/// Sizes in bytes of the three spaces of Abi.h. `constants` stays the caller's.
struct SpaceSizes {
  int64_t state = 0;
  int64_t arena = 0;
  const void *constants = nullptr;
  int64_t constantBytes = 0;
};

/// When a launch ran, on the host's clock.
struct LaunchTimes {
  std::chrono::steady_clock::time_point begin, end;
};

enum class LaunchKind { kernel, gemm };

/// One launch as it was timed.
struct LaunchRecord {
  const char *name;
  LaunchKind kind;
  LaunchTimes times;
  int64_t flops; ///< arithmetic operations
  int64_t bytes; ///< bytes that it asks memory for
};

using LaunchObserver = std::function<void(const LaunchRecord &)>;

/// What is done with memory that Device::access lends.
enum class Access { read, write, readWrite };

/// Not for use by several threads at once. Offsets are in bytes; out-of-range ones are defects.
class Device {
public:
  virtual ~Device() = default;

  /// Takes the memory of a program, zeroed; once. A machine status when there is too little.
  virtual Status allocate(const SpaceSizes &sizes) = 0;

  /// Copies `data` before returning; what was run before does not see it.
  virtual Status write(GradcSpace space, int64_t offset, const void *data, int64_t bytes) = 0;
  /// Waits for what was run before.
  virtual Status read(GradcSpace space, int64_t offset, void *data, int64_t bytes) = 0;

  /// Calls use(address) once, if `bytes` are in range, and returns its status. Where the host
  /// reaches the memory, it is lent itself; elsewhere `use` gets a copy, which was read before
  /// unless the mode is `write`, and which is written back after success unless it is `read`.
  /// `use` then has to fill all of what it is lent for writing. The address ends with the call.
  virtual Status access(GradcSpace space, int64_t offset, int64_t bytes, Access mode,
                        const std::function<Status(std::byte *)> &use);

  /// Runs a program on what its slots hold; may return before it has taken effect, as launches may.
  /// With an observer, which is called after each launch, it is slower.
  virtual Status run(const GradcProgram &program, const LaunchObserver &observe);
  virtual Status launch(const GradcLaunch &launch, int64_t iteration) = 0;
  virtual Status gemm(const GradcGemm &gemm, int64_t iteration) = 0;
  /// What a device needs that runs streams beside one another; nothing where all is run in order.
  virtual Status recordEvent(const GradcStreamEvent & /*event*/) { return {}; }
  virtual Status waitEvent(const GradcStreamEvent & /*event*/) { return {}; }
  /// Calls `work`, which launches something, and waits for it. What was launched before must have
  /// been waited for.
  virtual Status time(const std::function<Status()> &work, LaunchTimes &times);

  /// From now on what can be done in several ways is done in the fastest, as measured when it is
  /// first done; nothing where there is nothing to choose (GradcDeviceKind::hasAlgorithms).
  virtual Status tune() { return {}; }
  /// What was chosen so, a line each.
  virtual std::vector<std::string> choices() const { return {}; }

  /// Waits until everything launched has taken effect.
  virtual Status synchronize() = 0;

  /// Between programs: nothing reads what the arena holds, before it is written again. A device may
  /// lose it, to show who does.
  virtual void forgetArena() {}

  /// Fills the arena with a pattern; arenaHighWater() then tells how many bytes from its start up
  /// to the last one that was written since, to 8 bytes.
  virtual Status fillArena() = 0;
  virtual Expected<int64_t> arenaHighWater() = 0;
};

/// The defect status of a range that is not inside of a space of `size` bytes.
Status outsideOfSpace(GradcSpace space, int64_t offset, int64_t bytes, int64_t size);

/// What a device can do at best, where that was measured.
struct DevicePeak {
  std::string name;          ///< of a GPU its own, of a CPU the instructions: "avx2"
  double flopsPerSecond = 0; ///< 0: not known
  double bytesPerSecond = 0; ///< to and from memory; 0: not known
};

} // namespace gradc::rt

/// How an executable gets its device. Each target's runtime library defines one, so that an
/// executable is linked with its own target's alone.
struct GradcDeviceKind {
  /// `pool` is the host's, for what a device does there, and outlives the device.
  gradc::rt::Expected<std::unique_ptr<gradc::rt::Device>> (*create)(
      const GradcExecutable &executable, gradc::rt::ThreadPool &pool);
  /// Call it before any thread is started that may hold a lock.
  gradc::rt::Expected<gradc::rt::DevicePeak> (*peak)(int threads);
  /// Whether there is a device here that takes the executable, at once and without memory of it; a
  /// machine status says what is missing. Null where the host itself is the device.
  gradc::rt::Status (*find)(const GradcExecutable &executable);
  bool hasAlgorithms; ///< Device::tune has something to choose from
};

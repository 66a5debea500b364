// Runs GPU kernels that codegen/gpu has retargeted to the host: every CUDA thread is a fibre, one
// runs at a time, and every access to memory is checked. docs/design/emulator.md says what that
// proves.
#pragma once

#include <memory>
#include <vector>

#include "runtime/Status.h"
#include "runtime/emulator/Abi.h"

namespace gradc::rt {

/// In which order the warps of a block, and the lanes of a warp, get their turn. A warp runs until
/// all its lanes wait for another warp.
enum class WarpOrder {
  ascending,
  descending,
  alternating, ///< ascending in blocks of even index, descending in the others
};

struct EmulatedBuffer {
  void *address;
  int64_t bytes;
  bool writable;
};

/// Buffers that the blocks from `firstBlock` on, up to the next part's, find in a table.
struct EmulatedPart {
  int64_t firstBlock;
  std::vector<EmulatedBuffer> buffers; ///< may overlap
};

struct EmulatedLaunch {
  const char *name;
  const GradcEmulatedKernel *kernel;
  int64_t threads;            ///< a block
  int64_t dynamicSharedBytes; ///< a block
  int64_t blocks;
  int64_t extent;
  std::vector<EmulatedBuffer> buffers; ///< may overlap
  std::vector<EmulatedPart> parts =
      {}; ///< in the order of blocks; a block may access its own alone
};

/// Bytes of one buffer that the threads of a launch asked for, each access counted.
struct EmulatedTraffic {
  int64_t read = 0, written = 0;
};

namespace emulator {
class Machine;
} // namespace emulator

/// Not for use by several threads at once. The same launch gives the same bits and the same report
/// every time.
class Emulator {
public:
  explicit Emulator(WarpOrder order = WarpOrder::alternating);
  ~Emulator();
  Emulator(const Emulator &) = delete;
  Emulator &operator=(const Emulator &) = delete;

  /// Runs all blocks, one after another. The first error ends the launch, whose buffers are then
  /// partly written: a defect status that names kernel, block, thread, buffer and instruction, or a
  /// machine status when memory is short.
  Status run(const EmulatedLaunch &launch);

  /// Of the last launch: its buffers', then those of its parts. What several buffers share counts
  /// as the one's by which it was found.
  const std::vector<EmulatedTraffic> &traffic() const;

private:
  std::unique_ptr<emulator::Machine> machine_;
};

} // namespace gradc::rt

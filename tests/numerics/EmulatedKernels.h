// GPU kernels run on this machine: compiled as for a GPU up to optimised LLVM
// IR, which the emulator runs thread by thread and checks access by access.
#pragma once

#include "runtime/emulator/Emulator.h"
#include "tests/emulator/LoadedModule.h"
#include "tests/numerics/GpuModule.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gradc::codegen::gpu {

class EmulatedKernels {
public:
  /// Takes over what was printed into `module`; equal modules are compiled once. Fails the current
  /// test when something goes wrong.
  EmulatedKernels(GpuModule &module, const GpuTarget &target);

  explicit operator bool() const { return loaded != nullptr; }

  /// Runs `tasks` blocks of a kernel, and says what the emulator found.
  rt::Status launch(const std::string &kernel, const std::vector<rt::EmulatedBuffer> &buffers,
                    int64_t extent, int64_t tasks, rt::WarpOrder order,
                    const std::vector<rt::EmulatedPart> &parts = {}) const;
  /// Runs `tasks` blocks of a kernel; what the emulator finds fails the test.
  void run(const std::string &kernel, const std::vector<rt::EmulatedBuffer> &buffers,
           int64_t extent, int64_t tasks, rt::WarpOrder order = rt::WarpOrder::alternating) const;
  /// Of the last launch, as rt::Emulator has it.
  const std::vector<rt::EmulatedTraffic> &traffic() const { return seen; }

private:
  std::shared_ptr<const LoadedModule> loaded;
  std::map<std::string, int64_t> threads, sharedBytes; ///< of a block, by kernel
  mutable std::vector<rt::EmulatedTraffic> seen;
};

} // namespace gradc::codegen::gpu

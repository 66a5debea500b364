// Kernels given as NVPTX LLVM IR, emulated in this process.
#pragma once

#include "codegen/cpu/Target.h"
#include "runtime/emulator/Emulator.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace gradc {

/// The body of a module: what is around it (triple, data layout) is added.
class LoadedModule {
public:
  /// An error's text instead of a module that cannot be emulated.
  static std::string refusal(const std::string &text);

  /// Fails the current test when something goes wrong.
  explicit LoadedModule(const std::string &text);
  ~LoadedModule();

  /// Null, failing the test, where there is none of the name.
  const GradcEmulatedKernel *kernel(const std::string &name) const;

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// A launch of one kernel over vectors, which tests read afterwards.
class Launch {
public:
  Launch(const LoadedModule &module, const std::string &name, int64_t blocks, int64_t threads);

  template <typename Number> Launch &reads(const std::vector<Number> &numbers) {
    return buffer(const_cast<Number *>(numbers.data()), numbers.size() * sizeof(Number), false);
  }
  template <typename Number> Launch &writes(std::vector<Number> &numbers) {
    return buffer(numbers.data(), numbers.size() * sizeof(Number), true);
  }
  Launch &extent(int64_t extent) {
    launch.extent = extent;
    return *this;
  }
  Launch &dynamicShared(int64_t bytes) {
    launch.dynamicSharedBytes = bytes;
    return *this;
  }

  rt::Status run(rt::WarpOrder order = rt::WarpOrder::alternating);

private:
  Launch &buffer(void *address, std::size_t bytes, bool writable);

  std::string name;
  rt::EmulatedLaunch launch;
};

/// Expects a defect whose message has all of `words`.
void expectReport(const rt::Status &status, const std::vector<std::string> &words);
/// Fails the current test with the message of a status that is not ok.
void expectOk(const rt::Status &status);

} // namespace gradc

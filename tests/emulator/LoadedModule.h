// Kernels given as NVPTX LLVM IR, emulated in this process.
#pragma once

#include "codegen/cpu/Target.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/Functions.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm
namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace gradc {

/// Host code in this process. Fails the current test when something goes wrong.
class LoadedModule {
public:
  /// Kernels for the emulator: the body of a module in NVPTX LLVM IR, without triple and data
  /// layout.
  explicit LoadedModule(const std::string &text);
  /// A module that has been retargeted, and what it calls beside the emulator.
  LoadedModule(std::unique_ptr<llvm::Module> module, std::unique_ptr<llvm::LLVMContext> context,
               const std::vector<rt::emulator::Symbol> &symbols = {});
  LoadedModule(LoadedModule &&);
  LoadedModule &operator=(LoadedModule &&);
  ~LoadedModule();

  /// Why a body cannot be emulated; empty where it can.
  static std::string refusal(const std::string &text);

  /// Null, failing the test, where there is none of the name.
  void *symbol(const std::string &name) const;
  const GradcEmulatedKernel *kernel(const std::string &name) const {
    return static_cast<const GradcEmulatedKernel *>(symbol(name));
  }

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

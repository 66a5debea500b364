// From PTX to machine code, by the assembler of a CUDA toolkit where this machine has one. An
// executable needs no cubin: drivers assemble PTX themselves, once, when it is loaded.
#pragma once

#include "codegen/gpu/GpuTarget.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace gradc::codegen::gpu {

/// What the assembler says of a kernel.
struct KernelResources {
  std::string name;
  int64_t registers = 0;                           ///< a thread
  int64_t spillStoreBytes = 0, spillLoadBytes = 0; ///< a thread
  int64_t stackBytes = 0;                          ///< a thread
  int64_t sharedBytes = 0;                         ///< a block, static
  /// Of registers, as PTX has it, in place of its own that made it spill; an empty one: none.
  std::optional<std::string> limit;
};

struct Cubin {
  std::string image; ///< an ELF file
  std::vector<KernelResources> kernels;
};

/// What begins a kernel in PTX as LLVM prints it; its name follows, up to a parenthesis.
inline constexpr llvm::StringLiteral kernelEntry = ".visible .entry ";

/// Path of ptxas: in $CUDA_HOME/bin and nowhere else where CUDA_HOME is set, else on $PATH or in
/// /usr/local/cuda/bin; empty where there is none.
std::string findPtxas();

/// Kernels of a large model take seconds.
inline constexpr unsigned mostAssemblySeconds = 600;

/// Runs the assembler `ptxas`, for `mostSeconds` at most, and checks that what it made is code of a
/// GPU with all kernels of `ptx`. Every error is a MachineFault; it has what the assembler
/// complained with.
llvm::Expected<Cubin> assemblePtx(const std::string &ptx, const GpuTarget &target,
                                  const std::string &ptxas,
                                  unsigned mostSeconds = mostAssemblySeconds);

/// Reads what `ptxas -v` prints.
std::vector<KernelResources> parseResources(llvm::StringRef text);

} // namespace gradc::codegen::gpu

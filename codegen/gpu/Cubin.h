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

/// Path of ptxas: on $PATH, else in $CUDA_HOME/bin, or in /usr/local/cuda/bin where CUDA_HOME is
/// not set; empty where there is none.
std::string findPtxas();

/// Runs the assembler `ptxas`. An error has the first line that it complained with.
llvm::Expected<Cubin> assemblePtx(const std::string &ptx, const GpuTarget &target,
                                  const std::string &ptxas);

/// Reads what `ptxas -v` prints.
std::vector<KernelResources> parseResources(llvm::StringRef text);

} // namespace gradc::codegen::gpu

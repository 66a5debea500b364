// GPU kernels for the host: the optimised NVPTX LLVM IR of a kernel, the very code that would
// become PTX, retargeted so that runtime/emulator can run it thread by thread.
// docs/design/emulator.md says what that proves.
#pragma once

#include "codegen/cpu/Target.h"

#include "llvm/Support/Error.h"

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace gradc::codegen::gpu {

/// Rewrites a module of kernels for nvptx64-nvidia-cuda in place into one for `target`. In place of
/// each kernel (calling convention ptx_kernel; parameters: a pointer a buffer, then the extent as
/// i64) it leaves, under the kernel's name, a constant GradcEmulatedKernel
/// (runtime/emulator/Abi.h). Instructions of NVIDIA GPUs become calls of the emulator, and each
/// access to memory is announced to it.
///
/// Fails, leaving the module unusable, where a kernel has an instruction that the emulator does not
/// know: the error names it and the kernel.
llvm::Error emulateKernels(llvm::Module &module, const CpuTarget &target);

/// Threads of a block that a kernel declares (nvvm.reqntid); 0 where it declares none.
int64_t declaredThreads(const llvm::Function &kernel);

} // namespace gradc::codegen::gpu

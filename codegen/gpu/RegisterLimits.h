// Limits of registers, tried on kernels that the assembler would spill. ptxas settles on a few
// plateaus of occupancy and spills a word or two to stay on one; with another limit that leaves a
// multiprocessor as many blocks it often spills nothing. A limit moves values between registers and
// changes no result: the instructions and their order of arithmetic are the PTX's.
#pragma once

#include "codegen/gpu/Cubin.h"

namespace gradc::codegen::gpu {

/// Assembles `ptx`, then each kernel that spills with other limits, by itself, until one spills
/// nothing; of several that all spill, the first with the fewest bytes. What a kernel was assembled
/// with is in its KernelResources::limit. A few seconds where many kernels spill.
llvm::Expected<Cubin> assembleWithoutSpills(const std::string &ptx, const GpuTarget &target,
                                            const std::string &ptxas);

/// The limits worth trying, as PTX's directives, for a kernel of `threads` threads a block that
/// spilled at `registers` a thread: those first that leave a multiprocessor as many blocks, then
/// none (an empty string), then, where it holds more than one, those that leave it one fewer.
std::vector<std::string> limitsToTry(int64_t threads, int64_t registers);

} // namespace gradc::codegen::gpu

// The kernels that a step launches, with what they do beside the least that would do: what the
// executable's metadata and `gradc explain` tell.
#pragma once

#include "ir/Exec.h"

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gradc::codegen {

/// A distinct kernel, or a product by the library, which is named by productName. Sums are of all
/// its launches in a step; bytes and FLOPs are those of KernelWork (ir/KernelLibrary.h).
struct KernelUse {
  std::string name;
  int64_t launches = 0;
  int64_t bytes = 0, leastBytes = 0, flops = 0, leastFlops = 0;
  bool isCounted = true;  ///< else bytes and flops are not known, and are 0
  bool isLibrary = false; ///< taken to read each operand once
  std::string reason;     ///< why it does more than the least
};

/// What a command does each time: the kernel's own count, of a kernel that its target does not
/// count the fewest bytes and FLOPs that would do. It is what traces tell.
struct CommandWork {
  int64_t bytes = 0, flops = 0;
};
CommandWork workOf(exec::LaunchOp launch);
CommandWork workOf(exec::GemmOp gemm);

/// Kernels of all programs in the order in which they are defined, then the library's products;
/// launches are those of train_step.
std::vector<KernelUse> kernelTable(mlir::ModuleOp planned);

/// Commands of train_step by the layer that they belong to, forward and backward (of names such as
/// h.3.attn, where 3 is the layer), and those of none (-1).
std::map<int64_t, int64_t> launchesByLayer(mlir::ModuleOp planned);

/// The name of a product by the library in traces and tables: its sizes and its epilogue.
std::string productName(exec::GemmOp gemm);

} // namespace gradc::codegen

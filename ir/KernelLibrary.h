// What a target knows about the kernels it can make, asked by the memory plan. The target's codegen
// implements it and the driver passes it to the plan, so that passes never see codegen.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

namespace gradc {

/// How a kernel is launched, and the memory it needs besides its operands and results.
struct KernelGeometry {
  int64_t extent = 0; ///< rows or elements: the run-time size passed to the kernel
  int64_t tasks = 0;  ///< independent parts; never a function of the number of threads
  int64_t workspaceBytes = 0;
};

class KernelLibrary {
public:
  virtual ~KernelLibrary() = default;

  /// Geometry of the kernel for `op` (a fused cluster or an op with an emitter of its own), whose
  /// operands and then results have the given row strides (0: contiguous). Fails with a diagnostic
  /// on the op when the target has no such kernel.
  virtual llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                                   llvm::ArrayRef<int64_t> rowStrides) const = 0;

  /// Whether this matrix product is a kernel of this target; else the runtime's library makes it.
  virtual bool emitsProduct(mlir::Operation *product) const = 0;

  /// The encoding (#nn.panels) in which this op reads the operand that PanelsOpInterface names
  /// without packing it; null where the target would not gain by it.
  virtual mlir::Attribute panelsOf(mlir::Operation *) const { return {}; }

  /// Bytes in which the library repacks operands of an m x k times k x n product; 0 for none.
  virtual int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const = 0;
};

} // namespace gradc

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

/// How a target's products read fp8 numbers.
enum class Float8Operands {
  inPlace,    ///< however they lie
  alongDepth, ///< side by side along the inner dimension: lhs as it is, rhs transposed
  none,       ///< not at all: the product is of the narrow type that the numbers stand for
};

/// A unit attribute on a module whose plan failed because the target has no kernel for one of its
/// ops: a limit of the target, where any other failure is a defect.
inline constexpr llvm::StringLiteral refusedByTarget = "gradc.refused_by_target";

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

  /// Bytes that the library works in for an m x k times k x n product; 0 for none.
  virtual int64_t gemmWorkspaceBytes(int64_t m, int64_t n, int64_t k) const = 0;

  /// Whether the library makes this product with its epilogue (ProductOpInterface).
  virtual bool takesEpilogue(mlir::Operation * /*product*/) const { return false; }

  /// The element type in which the library adds a bias to this product; null where it adds none.
  virtual mlir::Type biasType(mlir::Operation * /*product*/) const { return {}; }

  /// How this product, once its operands are fp8 numbers, would read them.
  virtual Float8Operands float8Operands(mlir::Operation * /*product*/) const {
    return Float8Operands::inPlace;
  }
};

} // namespace gradc

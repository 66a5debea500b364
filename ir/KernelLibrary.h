// What a target knows about the kernels it can make, asked by the memory plan. The target's codegen
// implements it and the driver passes it to the plan, so that passes never see codegen.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <string>
#include <vector>

namespace gradc {

/// How a kernel is launched, and the memory it needs besides its operands and results.
struct KernelGeometry {
  int64_t extent = 0; ///< rows or elements: the run-time size passed to the kernel
  int64_t tasks = 0;  ///< independent parts; never a function of the number of threads
  int64_t workspaceBytes = 0;
};

/// How an op's operands and then its results lie in memory.
struct KernelLayout {
  llvm::ArrayRef<int64_t> rowStrides; ///< elements from row to row; 0: contiguous
  /// Bytes that addresses are multiples of; empty: all of KernelLibrary::accessBytes.
  llvm::ArrayRef<int64_t> alignments;
};

/// How a target's products read fp8 numbers.
enum class Float8Operands {
  inPlace,    ///< however they lie
  alongDepth, ///< side by side along the inner dimension: lhs as it is, rhs transposed
  none,       ///< not at all: the product is of the narrow type that the numbers stand for
};

/// Sizes of an op's operands and results that its kernel takes from the launch (extent) rather than
/// being made for them.
enum class RuntimeSizes {
  none,
  rows, ///< all but the number of columns
  all,
};

/// What a launch asks memory for in one of its buffers, in bytes.
struct BufferTraffic {
  int64_t read = 0, written = 0;
  /// Many threads read the same bytes (a bias, a row's mean), which come from a cache but for the
  /// first time: each is counted once. Else every access is counted.
  bool cached = false;
  /// What is accessed depends on the data, or on what the compiler leaves out: this is the most.
  bool atMost = false;
};

/// What a launch does, as its emitter lays it out, beside the least that would do. Where it depends
/// on the data, what is counted is the most: every token valid, a row of documents as one document.
/// A FLOP is one operation of floating-point arithmetic on one element, a multiply-add two; what
/// the threads of a row all compute alike is counted once.
struct KernelWork {
  std::vector<BufferTraffic> buffers; ///< in the order of the launch, workspace left out
  int64_t leastBytes = 0;             ///< every operand read once, every result written once
  int64_t flops = 0, leastFlops = 0;
  std::string reason; ///< why it is more than the least; empty where it is not

  int64_t bytes() const {
    int64_t sum = 0;
    for (const BufferTraffic &buffer : buffers)
      sum += buffer.read + buffer.written;
    return sum;
  }
};

class KernelLibrary {
public:
  virtual ~KernelLibrary() = default;

  /// Geometry of the kernel for `op` (a fused cluster or an op with an emitter of its own). Fails
  /// with a diagnostic on the op when the target has no such kernel, a defect where `limits` says
  /// nothing.
  virtual llvm::FailureOr<KernelGeometry> geometry(mlir::Operation *op,
                                                   const KernelLayout &layout) const = 0;

  /// Where a model asks for more than the target's kernels can: what, and the mend. Empty where the
  /// op is within their limits.
  virtual std::string limits(mlir::Operation *) const { return ""; }

  /// Bytes of the widest access of a kernel, where its address must be a multiple of as many; 1
  /// where addresses may be any.
  virtual int64_t accessBytes() const { return 1; }

  /// What a launch of that kernel does; nothing where the target does not count it.
  virtual std::optional<KernelWork> work(mlir::Operation *op, const KernelLayout &layout) const = 0;

  virtual RuntimeSizes runtimeSizes(mlir::Operation *op) const = 0;

  /// Bytes of the table in which the kernel of a launch in parts finds its buffers, `buffers` a
  /// part; 0 where the runtime passes them to each task.
  virtual int64_t partTableBytes(int64_t parts, int64_t buffers) const = 0;

  /// Whether this matrix product is a kernel of this target; else the runtime's library makes it.
  virtual bool emitsProduct(mlir::Operation *product) const = 0;

  /// The encoding (#nn.panels) in which this op reads the operand that PanelsOpInterface names
  /// without packing it; null where the target would not gain by it.
  virtual mlir::Attribute panelsOf(mlir::Operation *) const { return {}; }

  /// Rows of logits that a chunk of the loss may have (chunk-loss) even where they take more memory
  /// than a chunk should: each chunk reads and writes the whole gradient of the head's weight.
  virtual int64_t allowedLossChunkRows() const { return 1; }

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

// Linear layers in fp8: which products these are, and how their operands and gradients are
// quantized. Their types are then those of the bf16 mode: nn.fake_quantize says what fp8 leaves of
// a value, and autodiff's gradients come as of any other product.
#pragma once

#include "ir/Nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gradc {

/// What a scale is made of: the magnitudes of the tensor itself, or of the steps before.
enum class Float8Scaling { current, delayed };

/// A tensor whose magnitudes delayed scaling records, known by a weight: the first that it is
/// multiplied with, or the one whose product's gradient it is.
struct AmaxRecord {
  std::string weight;   ///< the parameter's name, with #2, #3, … where a function uses it again
  llvm::StringRef part; ///< input_amax or gradient_amax
  bool operator==(const AmaxRecord &) const = default;
};

/// One function's linear layers: products of a parameter and an activation whose result other
/// products read. The head is none: nothing but ops that follow their inputs (a bias, a scale, a
/// view) stands between its result and an op that computes in fp32, such as the loss, or the
/// caller.
class LinearLayers {
public:
  explicit LinearLayers(mlir::func::FuncOp function);

  bool contains(mlir::Operation *product) const { return gradientRecord.contains(product); }

  /// The records of its activations and gradients, in the order of its products.
  llvm::ArrayRef<AmaxRecord> records() const { return list; }
  const AmaxRecord &recordOfInput(mlir::Operation *product) const {
    return list[inputRecord.lookup(product)];
  }
  const AmaxRecord &recordOfGradient(mlir::Operation *product) const {
    return list[gradientRecord.lookup(product)];
  }

private:
  void add(mlir::Operation *product, mlir::BlockArgument weight, mlir::Value activation);

  mlir::func::FuncOp function;
  llvm::SmallVector<AmaxRecord> list;
  llvm::DenseMap<mlir::Value, size_t> recordOf; ///< of activations
  llvm::DenseMap<mlir::Operation *, size_t> inputRecord, gradientRecord;
  llvm::StringMap<int> uses; ///< of weights, by name
};

/// Gives each function an argument, a scalar with the attribute nn.record, for each record of any
/// of them, all in one order behind the parameters.
void addRecordArguments(llvm::ArrayRef<mlir::func::FuncOp> functions);

/// The argument of a record that addRecordArguments gave the function.
mlir::Value recordArgument(mlir::func::FuncOp function, const AmaxRecord &record);

} // namespace gradc

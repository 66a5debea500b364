// What the verifiers share: the element type and shape of a value, and errors that name them.
#pragma once

#include "ir/Nn.h"

namespace gradc::nn {

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

inline mlir::Type elementTypeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}

/// "8x64", "scalar" for rank 0: shapes as they stand in a tensor type.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// Fails unless `value`, which the error calls `name`, has this shape.
llvm::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                llvm::ArrayRef<int64_t> shape);

/// Fails unless `value` has this rank; `atLeast` allows more.
llvm::LogicalResult expectRank(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                               size_t rank, bool atLeast = false);

/// Fails unless `value` has the type of `other`, which the error calls `otherName`.
llvm::LogicalResult expectSameType(mlir::Operation *op, llvm::StringRef name, mlir::Value value,
                                   llvm::StringRef otherName, mlir::Value other);

/// Fails unless `value` has the element type of `other`, which the error calls `otherName`.
llvm::LogicalResult expectSameElementType(mlir::Operation *op, llvm::StringRef name,
                                          mlir::Value value, llvm::StringRef otherName,
                                          mlir::Value other);

/// Fails unless an attribute's value is positive.
llvm::LogicalResult expectPositive(mlir::Operation *op, llvm::StringRef name, int64_t value);
llvm::LogicalResult expectPositive(mlir::Operation *op, llvm::StringRef name,
                                   const llvm::APFloat &value);

/// Fails unless a probability of dropping is at least 0 and below 1.
llvm::LogicalResult expectDropoutRate(mlir::Operation *op, llvm::StringRef name,
                                      const llvm::APFloat &rate);

} // namespace gradc::nn

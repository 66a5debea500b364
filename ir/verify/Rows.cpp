// Verifiers of row ops: operands and results against rows and columns, and what single ops add.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;

namespace {

int64_t elementsOf(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

/// One value a row: [.., 1], or for integers (targets) any shape of as many elements.
bool isRow(Type type, RowSpace space) {
  bool isIndex = cast<RankedTensorType>(type).getElementType().isInteger();
  return isIndex ? elementsOf(type) == space.rows : rowSpaceOf(type) == RowSpace{space.rows, 1};
}

/// Whether a tensor can be indexed as `kind` in `space`.
bool fits(Type type, BufferKind kind, RowSpace space) {
  switch (kind) {
  case BufferKind::matrix: // a single row takes its elements in any shape
    return rowSpaceOf(type) == space || (space.rows == 1 && elementsOf(type) == space.columns);
  case BufferKind::column:
    return rowSpaceOf(type) == RowSpace{1, space.columns};
  case BufferKind::row:
    return isRow(type, space);
  case BufferKind::scalar:
    return elementsOf(type) == 1;
  case BufferKind::columnPartial:
    return rowSpaceOf(type) ==
           RowSpace{(space.rows + row::rowsPerTask - 1) / row::rowsPerTask, space.columns};
  }
  llvm_unreachable("every kind of buffer is handled");
}

std::string expectation(BufferKind kind, RowSpace space) {
  std::string rows = std::to_string(space.rows), columns = std::to_string(space.columns);
  switch (kind) {
  case BufferKind::matrix:
    return "to have " + rows + " rows of " + columns + " columns";
  case BufferKind::column:
    return "to have one value for each of " + columns + " columns";
  case BufferKind::row:
    return "to have one value for each of " + rows + " rows";
  case BufferKind::scalar:
    return "to have one value";
  case BufferKind::columnPartial:
    return "to have one row of " + columns + " columns for each " +
           std::to_string(row::rowsPerTask) + " of " + rows + " rows";
  }
  llvm_unreachable("every kind of buffer is handled");
}

/// Whether the op leaves it to broadcasting how this operand is indexed.
bool isBroadcast(Type type, BufferKind kind, RowSpace space) {
  return !cast<RankedTensorType>(type).getElementType().isInteger() &&
         kind == broadcastKind(type, space);
}

} // namespace

LogicalResult gradc::nn::verifyRowOp(Operation *op) {
  auto rowOp = cast<RowOpInterface>(op);
  RowSpace space = rowOp.getRowSpace();
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    BufferKind kind = rowOp.getOperandKind(i);
    if (fits(operand.getType(), kind, space))
      continue;
    std::string expected = isBroadcast(operand.getType(), kind, space)
                               ? "to broadcast to " + std::to_string(space.rows) + " rows of " +
                                     std::to_string(space.columns) + " columns"
                               : expectation(kind, space);
    return op->emitOpError("expected operand #")
           << i << " " << expected << ", got: " << operand.getType();
  }
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (BufferKind kind = rowOp.getResultKind(i); !fits(result.getType(), kind, space))
      return op->emitOpError("expected result #")
             << i << " " << expectation(kind, space) << ", got: " << result.getType();
  return success();
}

LogicalResult LayerNormOp::verify() {
  int64_t columns = getRowSpace().columns;
  if (failed(expectRank(*this, "input", getInput(), 1, /*atLeast=*/true)) ||
      failed(expectShape(*this, "weight", getWeight(), columns)) ||
      failed(expectShape(*this, "bias", getBias(), columns)))
    return failure();
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult RmsNormOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 1, /*atLeast=*/true)) ||
      failed(expectShape(*this, "weight", getWeight(), getRowSpace().columns)))
    return failure();
  return expectPositive(*this, "epsilon", getEpsilon());
}

LogicalResult CrossEntropyOp::verify() {
  if (failed(expectRank(*this, "logits", getLogits(), 2)) ||
      failed(expectRank(*this, "targets", getTargets(), 1)))
    return failure();
  return expectSameType(*this, "lse", getLse(), "loss", getLoss());
}

LogicalResult DropoutOp::verify() { return expectDropoutRate(*this, "rate", getRate()); }

LogicalResult ColumnPartialsOp::verify() { return expectRank(*this, "result", getResult(), 2); }

LogicalResult FoldRowsOp::verify() {
  if (failed(expectRank(*this, "input", getInput(), 2)))
    return failure();
  return expectShape(*this, "result", getResult(), shapeOf(getInput())[1]);
}

LogicalResult SquareSumsOp::verify() {
  int64_t elements = elementsOf(getInput().getType());
  return expectShape(*this, "result", getResult(),
                     (elements + row::flatElementsPerTask - 1) / row::flatElementsPerTask);
}

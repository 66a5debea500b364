// Verifiers of matrix products, rope and embeddings.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

LogicalResult MatmulOp::verify() {
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  if (failed(expectRank(*this, "lhs", getLhs(), 2, /*atLeast=*/true)) ||
      failed(expectRank(*this, "rhs", getRhs(), lhs.size())))
    return failure();
  // Fp8 operands may be of one format each.
  bool isFloat8 = elementTypeOf(getLhs()).getIntOrFloatBitWidth() == 8;
  if (!isFloat8 || elementTypeOf(getRhs()).getIntOrFloatBitWidth() != 8)
    if (failed(expectSameElementType(*this, "rhs", getRhs(), "lhs", getLhs())))
      return failure();
  if (isFloat8 != (getLhsScale() != nullptr) || isFloat8 != (getRhsScale() != nullptr))
    return emitOpError("expected two scales with operands of fp8 and with no others, lhs being of ")
           << elementTypeOf(getLhs());
  auto panels =
      dyn_cast_if_present<PanelsAttr>(cast<RankedTensorType>(getRhs().getType()).getEncoding());
  if (panels && panels.getTransposed() != getTransposeRhs())
    return emitOpError("expected rhs in panels of the matrix that it multiplies by, transposed = ")
           << (getTransposeRhs() ? "true" : "false") << ", got: " << panels;
  if (panels && panels.getTf32() != getTf32())
    return emitOpError("expected rhs in panels rounded as the product's inputs are, tf32 = ")
           << (getTf32() ? "true" : "false") << ", got: " << panels;
  ArrayRef<int64_t> batches = lhs.drop_back(2);
  if (batches != rhs.drop_back(2))
    return emitOpError("expected rhs with the batches of lhs, ")
           << shapeText(batches) << ", got: " << shapeText(rhs.drop_back(2));
  auto dims = [](ArrayRef<int64_t> shape, bool transposed) {
    int64_t rows = shape[shape.size() - 2], columns = shape.back();
    return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
  };
  auto [m, k] = dims(lhs, getTransposeLhs());
  auto [rhsK, n] = dims(rhs, getTransposeRhs());
  if (k != rhsK)
    return emitOpError("expected an inner dimension of rhs equal to that of lhs, ")
           << k << ", got: " << rhsK;
  SmallVector<int64_t> result(batches);
  result.append({m, n});
  if (failed(expectShape(*this, "result", getResult(), result)))
    return failure();
  Type narrow = elementTypeOf(getLhs()), type = elementTypeOf(getResult());
  if (!type.isF32() && type != narrow && !isFloat8)
    return emitOpError("expected result to have the element type f32 or that of lhs, ")
           << narrow << ", got: " << type;
  if (getTf32() && !narrow.isF32())
    return emitOpError("expected operands of f32 with tf32, got: ") << narrow;
  if (!getAccumulator())
    return success();
  if (!type.isF32())
    return emitOpError("expected a result of f32 with an accumulator, got: ") << type;
  return expectSameType(*this, "accumulator", getAccumulator(), "result", getResult());
}

LogicalResult RopeOp::verify() {
  int64_t heads = getHeads();
  if (failed(expectRank(*this, "input", getInput(), 2)) ||
      failed(expectPositive(*this, "number of heads", heads)))
    return failure();
  int64_t tokens = shapeOf(getInput())[0], columns = shapeOf(getInput())[1];
  if (columns % (2 * heads) != 0)
    return emitOpError("expected columns divisible by twice the number of heads, ")
           << 2 * heads << ", got: " << columns;
  if (failed(expectRank(*this, "cos", getCos(), 2)))
    return failure();
  int64_t positions = shapeOf(getCos())[0];
  if (failed(expectShape(*this, "cos", getCos(), {positions, columns / heads / 2})))
    return failure();
  if (tokens % positions != 0)
    return emitOpError("expected a number of tokens divisible by the rows of the tables, ")
           << positions << ", got: " << tokens;
  return getPositions() ? expectShape(*this, "positions", getPositions(), {tokens}) : success();
}

LogicalResult DocumentsOp::verify() {
  int64_t seq = getSeq(), separator = getSeparator();
  if (failed(expectRank(*this, "tokens", getTokens(), 1)) ||
      failed(expectPositive(*this, "length of a row", seq)))
    return failure();
  if (int64_t tokens = shapeOf(getTokens())[0]; tokens % seq != 0)
    return emitOpError("expected tokens divisible by the length of a row, ")
           << seq << ", got: " << tokens;
  if (separator < 0 || separator > std::numeric_limits<int32_t>::max())
    return emitOpError("expected a separator that is an i32 of 0 or more, got: ") << separator;
  return success();
}

LogicalResult EmbeddingOp::verify() {
  if (failed(expectRank(*this, "table", getTable(), 2)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(getIndices()));
  shape.push_back(shapeOf(getTable())[1]);
  return expectShape(*this, "result", getResult(), shape);
}

LogicalResult EmbeddingGradOp::verify() {
  if (failed(expectRank(*this, "result", getResult(), 2)))
    return failure();
  SmallVector<int64_t> shape(shapeOf(getIndices()));
  shape.push_back(shapeOf(getResult())[1]);
  if (failed(expectShape(*this, "gradient", getGradient(), shape)))
    return failure();
  return getAccumulator()
             ? expectSameType(*this, "accumulator", getAccumulator(), "result", getResult())
             : success();
}

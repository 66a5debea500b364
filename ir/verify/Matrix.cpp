// Verifiers of matrix products, rope and embeddings.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

static LogicalResult verifyProduct(ProductOpInterface op) {
  Value left = op.getLhs(), right = op.getRhs(), product = op->getResult(0);
  ArrayRef<int64_t> lhs = shapeOf(left), rhs = shapeOf(right);
  if (failed(expectRank(op, "lhs", left, 2, /*atLeast=*/true)) ||
      failed(expectRank(op, "rhs", right, lhs.size())))
    return failure();
  // Fp8 operands may be of one format each.
  bool isFloat8 = elementTypeOf(left).getIntOrFloatBitWidth() == 8;
  if (!isFloat8 || elementTypeOf(right).getIntOrFloatBitWidth() != 8)
    if (failed(expectSameElementType(op, "rhs", right, "lhs", left)))
      return failure();
  if (isFloat8 != (op.getLhsScale() != nullptr) || isFloat8 != (op.getRhsScale() != nullptr))
    return op->emitOpError(
               "expected two scales with operands of fp8 and with no others, lhs being of ")
           << elementTypeOf(left);
  auto panels =
      dyn_cast_if_present<PanelsAttr>(cast<RankedTensorType>(right.getType()).getEncoding());
  if (panels && panels.getTransposed() != op.getTransposeRhs())
    return op->emitOpError(
               "expected rhs in panels of the matrix that it multiplies by, transposed = ")
           << (op.getTransposeRhs() ? "true" : "false") << ", got: " << panels;
  if (panels && panels.getTf32() != op.getTf32())
    return op->emitOpError("expected rhs in panels rounded as the product's inputs are, tf32 = ")
           << (op.getTf32() ? "true" : "false") << ", got: " << panels;
  ArrayRef<int64_t> batches = lhs.drop_back(2);
  if (batches != rhs.drop_back(2))
    return op->emitOpError("expected rhs with the batches of lhs, ")
           << shapeText(batches) << ", got: " << shapeText(rhs.drop_back(2));
  auto dims = [](ArrayRef<int64_t> shape, bool transposed) {
    int64_t rows = shape[shape.size() - 2], columns = shape.back();
    return transposed ? std::pair(columns, rows) : std::pair(rows, columns);
  };
  auto [m, k] = dims(lhs, op.getTransposeLhs());
  auto [rhsK, n] = dims(rhs, op.getTransposeRhs());
  if (k != rhsK)
    return op->emitOpError("expected an inner dimension of rhs equal to that of lhs, ")
           << k << ", got: " << rhsK;
  SmallVector<int64_t> result(batches);
  result.append({m, n});
  if (failed(expectShape(op, "result", product, result)))
    return failure();
  Type narrow = elementTypeOf(left), type = elementTypeOf(product);
  if (!type.isF32() && type != narrow && !isFloat8)
    return op->emitOpError("expected result to have the element type f32 or that of lhs, ")
           << narrow << ", got: " << type;
  if (op.getTf32() && !narrow.isF32())
    return op->emitOpError("expected operands of f32 with tf32, got: ") << narrow;
  if (!op.getAccumulator())
    return success();
  if (!type.isF32())
    return op->emitOpError("expected a result of f32 with an accumulator, got: ") << type;
  return expectSameType(op, "accumulator", op.getAccumulator(), "result", product);
}

LogicalResult MatmulOp::verify() { return verifyProduct(*this); }

LogicalResult EpilogueMatmulOp::verify() {
  if (failed(expectRank(*this, "lhs", getLhs(), 2)) || failed(verifyProduct(*this)))
    return failure();
  Epilogue epilogue = getEpilogue();
  if (epilogue == Epilogue::None)
    return emitOpError("expected an epilogue; a product without one is nn.matmul");
  if (addsBias(epilogue) != (getBias() != nullptr) || readsAux(epilogue) != (getAux() != nullptr))
    return emitOpError("expected a bias where the epilogue adds one, and aux where it reads one");
  bool givesExtra = writesAux(epilogue) || givesBiasGradient(epilogue);
  if (givesExtra != (getExtra() != nullptr))
    return emitOpError("expected a second result where the epilogue gives aux or a bias gradient");
  ArrayRef<int64_t> shape = shapeOf(getResult());
  if (getBias() && failed(expectShape(*this, "bias", getBias(), {shape[1]})))
    return failure();
  if (getAux() && failed(expectSameType(*this, "aux", getAux(), "result", getResult())))
    return failure();
  if (writesAux(epilogue))
    return expectSameType(*this, "aux", getExtra(), "result", getResult());
  if (!givesBiasGradient(epilogue))
    return success();
  bool ofLhs = epilogue == Epilogue::BiasGradientLhs;
  return expectShape(*this, "bias gradient", getExtra(), {shape[ofLhs ? 0 : 1]});
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

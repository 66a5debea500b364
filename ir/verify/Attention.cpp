// Verifiers of attention and its gradient.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

namespace {

/// Checks attributes and the shapes of query, key, value and lse, which both ops have.
template <typename Op> LogicalResult verifyOperands(Op op) {
  int64_t batch = op.getBatch(), heads = op.getHeads(), kvHeads = op.getKvHeads();
  if (failed(expectRank(op, "query", op.getQuery(), 2)) ||
      failed(expectPositive(op, "batch", batch)) ||
      failed(expectPositive(op, "number of heads", heads)) ||
      failed(expectPositive(op, "number of key-value heads", kvHeads)) ||
      failed(expectPositive(op, "scale", op.getScale())))
    return failure();
  if (static_cast<int64_t>(op.getWindow()) < 0)
    return op.emitOpError("expected a window of 0 (none) or more, got: ")
           << static_cast<int64_t>(op.getWindow());
  if (op.getWindow() > 0 && !op.getCausal())
    return op.emitOpError("expected causal with a window: it bounds what lies before a query");
  if (failed(expectDropoutRate(op, "dropout", op.getDropout())))
    return failure();
  bool drops = !op.getDropout().isZero();
  for (Value key : {op.getSeed(), op.getStep(), op.getFirstRow(), op.getStream()})
    if (drops != bool(key))
      return op.emitOpError("expected a seed, a step, a first row and a stream with dropout, and "
                            "none without");
  int64_t tokens = shapeOf(op.getQuery())[0], columns = shapeOf(op.getQuery())[1];
  if (heads % kvHeads != 0)
    return op.emitOpError("expected heads divisible by the number of key-value heads, ")
           << kvHeads << ", got: " << heads;
  if (tokens % batch != 0)
    return op.emitOpError("expected tokens divisible by the batch, ")
           << batch << ", got: " << tokens;
  if (columns % heads != 0)
    return op.emitOpError("expected columns of query divisible by the number of heads, ")
           << heads << ", got: " << columns;
  int64_t keyColumns = columns / heads * kvHeads;
  if (failed(expectShape(op, "key", op.getKey(), {tokens, keyColumns})) ||
      failed(expectShape(op, "value", op.getValue(), {tokens, keyColumns})) ||
      failed(expectSameElementType(op, "key", op.getKey(), "query", op.getQuery())) ||
      failed(expectSameElementType(op, "value", op.getValue(), "query", op.getQuery())) ||
      (op.getFirstKey() && failed(expectShape(op, "first key", op.getFirstKey(), {tokens}))))
    return failure();
  return expectShape(op, "lse", op.getLse(), {batch, heads, tokens / batch});
}

} // namespace

LogicalResult AttentionOp::verify() {
  if (failed(verifyOperands(*this)))
    return failure();
  return expectSameType(*this, "result", getResult(), "query", getQuery());
}

LogicalResult AttentionGradOp::verify() {
  for (auto [name, result] : {std::pair("query gradient", getQueryGradient()),
                              {"key gradient", getKeyGradient()},
                              {"value gradient", getValueGradient()}})
    if (failed(expectSameElementType(*this, name, result, "query", getQuery())))
      return failure();
  if (failed(verifyOperands(*this)) ||
      failed(expectSameType(*this, "gradient", getGradient(), "query", getQuery())) ||
      failed(expectSameType(*this, "output", getOutput(), "query", getQuery())) ||
      failed(expectShape(*this, "query gradient", getQueryGradient(), shapeOf(getQuery()))) ||
      failed(expectShape(*this, "key gradient", getKeyGradient(), shapeOf(getKey()))))
    return failure();
  return expectShape(*this, "value gradient", getValueGradient(), shapeOf(getValue()));
}

// Verifiers of the optimizer updates and the region ops.
#include "ir/verify/Shapes.h"

using namespace mlir;
using namespace gradc::nn;

namespace {

LogicalResult verifyGradientAndState(Operation *op, Value parameter, Value gradient,
                                     ArrayRef<Value> state) {
  if (failed(expectShape(op, "gradient", gradient, shapeOf(parameter))))
    return failure();
  for (Value moment : state)
    if (failed(expectShape(op, "optimizer state", moment, shapeOf(parameter))))
      return failure();
  return success();
}

/// Compares types one by one; the errors call them e.g. "block argument #1".
LogicalResult expectTypes(Operation *op, StringRef name, TypeRange actual,
                          ArrayRef<Type> expected) {
  if (actual.size() != expected.size())
    return op->emitOpError("expected ")
           << expected.size() << " " << name << "s, got: " << actual.size();
  for (auto [i, types] : llvm::enumerate(llvm::zip_equal(actual, expected)))
    if (auto [got, wanted] = types; got != wanted)
      return op->emitOpError("expected ")
             << name << " #" << i << " of type " << wanted << ", got: " << got;
  return success();
}

} // namespace

LogicalResult AdamwOp::verify() {
  return verifyGradientAndState(*this, getParameter(), getGradient(), {getExpAvg(), getExpAvgSq()});
}

LogicalResult SgdOp::verify() {
  return verifyGradientAndState(*this, getParameter(), getGradient(), {getMomentum()});
}

LogicalResult LionOp::verify() {
  return verifyGradientAndState(*this, getParameter(), getGradient(), {getExpAvg()});
}

LogicalResult MicrobatchesOp::verify() {
  if (getSliced().empty())
    return emitOpError("expected one sliced operand or more, got: 0");
  SmallVector<Type> arguments;
  int64_t count = 0;
  for (auto [i, sliced] : llvm::enumerate(getSliced())) {
    std::string name = "sliced operand #" + std::to_string(i);
    if (failed(expectRank(*this, name, sliced, 1, /*atLeast=*/true)))
      return failure();
    auto type = cast<RankedTensorType>(sliced.getType());
    count = i == 0 ? type.getDimSize(0) : count;
    if (type.getDimSize(0) != count)
      return emitOpError("expected ")
             << name << " to have " << count << " entries, got: " << type.getDimSize(0);
    arguments.push_back(type.clone(type.getShape().drop_front()));
  }
  SmallVector<Type> carried(getInitial().getTypes());
  llvm::append_range(arguments, carried);
  if (failed(expectTypes(*this, "block argument", getBody().getArgumentTypes(), arguments)) ||
      failed(expectTypes(*this, "yielded value",
                         getBody().front().getTerminator()->getOperandTypes(), carried)))
    return failure();
  return expectTypes(*this, "result", getResultTypes(), carried);
}

LogicalResult FusedOp::verify() {
  SmallVector<Type> results(getResultTypes());
  if (failed(expectTypes(*this, "block argument", getBody().getArgumentTypes(),
                         SmallVector<Type>(getInputs().getTypes()))) ||
      failed(expectTypes(*this, "yielded value",
                         getBody().front().getTerminator()->getOperandTypes(), results)))
    return failure();
  std::optional<RowSpace> space;
  for (Operation &op : getBody().front().without_terminator()) {
    auto fusion = dyn_cast<FusionOpInterface>(op);
    if (!fusion || (!isa<RowOpInterface>(op) && fusion.getFusionRole() != FusionRole::view &&
                    fusion.getFusionRole() != FusionRole::constant))
      return emitOpError("expected row ops, views and constants in its body, got: '")
             << op.getName() << "'";
    auto rowOp = dyn_cast<RowOpInterface>(op);
    if (!rowOp)
      continue;
    RowSpace own = rowOp.getRowSpace();
    space = space.value_or(own);
    if (own != *space)
      return emitOpError("expected every op of its body to have ")
             << space->rows << " rows of " << space->columns << " columns, got: " << own.rows
             << " rows of " << own.columns << " columns of '" << op.getName() << "'";
  }
  return success();
}

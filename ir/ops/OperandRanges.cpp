// What ops ask of the values of their operands.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

/// What is asked of an operand, if anything.
using Asked = std::optional<Interval>;

namespace {

constexpr Interval rate = {1e-3, 0.1}, coefficient = {0.8, 0.99}, factor = {0.1, 1},
                   positive = {0.1, 2};

/// The operand's entry of a list in the operands' order; an empty one, or none, asks nothing.
Asked pick(unsigned operand, std::initializer_list<Asked> ranges) {
  return operand < ranges.size() ? ranges.begin()[operand] : std::nullopt;
}

Interval below(int64_t count) { return {0, static_cast<double>(count)}; }
Interval rowsOf(Value table) { return below(rowSpaceOf(table.getType()).rows); }
/// Labels, of which -1 is none.
Interval targetsBelow(int64_t count) { return {-1, static_cast<double>(count)}; }

} // namespace

//===-- Indices and labels
//-----------------------------------------------------------------------===//

Asked EmbeddingOp::getOperandRange(unsigned operand) { return pick(operand, {rowsOf(getTable())}); }
Asked EmbeddingGradOp::getOperandRange(unsigned operand) {
  return pick(operand, {rowsOf(getResult())});
}
Asked AttentionOp::getOperandRange(unsigned operand) {
  if (!getFirstKey())
    return std::nullopt;
  int64_t seq = rowSpaceOf(getQuery().getType()).rows / static_cast<int64_t>(getBatch());
  return pick(operand, {{}, {}, {}, below(seq)});
}
Asked RopeOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, {}, rowsOf(getCos())});
}
Asked CrossEntropyOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, targetsBelow(rowSpaceOf(getLogits().getType()).columns)});
}
Asked CrossEntropyGradOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, targetsBelow(rowSpaceOf(getLogits().getType()).columns)});
}
Asked LinearCrossEntropyOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, targetsBelow(getLogitsSpace().columns)});
}
Asked LinearCrossEntropyGradOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, {}, targetsBelow(getLogitsSpace().columns)});
}
Asked CountValidOp::getOperandRange(unsigned operand) { return pick(operand, {Interval{-1, 4}}); }

//===-- Numbers
//----------------------------------------------------------------------------------===//

Asked LogOp::getOperandRange(unsigned operand) { return pick(operand, {positive}); }
Asked SqrtOp::getOperandRange(unsigned operand) { return pick(operand, {positive}); }
Asked DivOp::getOperandRange(unsigned operand) { return pick(operand, {{}, positive}); }
Asked QuantizeOp::getOperandRange(unsigned operand) { return pick(operand, {{}, positive}); }
Asked FakeQuantizeOp::getOperandRange(unsigned operand) { return pick(operand, {{}, positive}); }
Asked ScaleOfAmaxOp::getOperandRange(unsigned operand) { return pick(operand, {positive}); }
Asked ClipCoefficientOp::getOperandRange(unsigned operand) {
  return pick(operand, {positive, positive});
}

//===-- Optimizers
//-------------------------------------------------------------------------------===//

Asked AdamwOp::getOperandRange(unsigned operand) {
  return pick(
      operand,
      {{}, {}, {}, positive, factor, rate, coefficient, coefficient, rate, rate, factor, factor});
}
Asked SgdOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, {}, factor, rate, coefficient, rate});
}
Asked LionOp::getOperandRange(unsigned operand) {
  return pick(operand, {{}, {}, {}, factor, rate, coefficient, coefficient, rate});
}

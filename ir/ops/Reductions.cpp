// Cross-entropy and the sums: row bodies, kinds and backwards.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;
using RowBuilder = row::Builder;
using row::NodeId;

//===-- What stays in fp32
//----------------------------------------------------------------------------===//

PrecisionClass CrossEntropyOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass CrossEntropyGradOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass SoftmaxOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass SoftmaxGradOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass RowSumOp::getPrecisionClass() { return PrecisionClass::full; }
std::optional<EpilogueStep> ColumnPartialsOp::getEpilogueStep() {
  return EpilogueStep::columnPartials;
}
std::optional<EpilogueStep> FoldRowsOp::getEpilogueStep() { return EpilogueStep::foldPartials; }
PrecisionClass ColumnPartialsOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass FoldRowsOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass SumOp::getPrecisionClass() { return PrecisionClass::full; }
PrecisionClass SquareSumsOp::getPrecisionClass() { return PrecisionClass::full; }
bool CrossEntropyOp::takesNarrow(unsigned) { return true; }
bool CrossEntropyGradOp::takesNarrow(unsigned) { return true; }

//===-- Cross-entropy
//----------------------------------------------------------------------------===//

RowSpace CrossEntropyOp::getRowSpace() { return rowSpaceOf(getLogits().getType()); }
BufferKind CrossEntropyOp::getOperandKind(unsigned operand) {
  return operand == 0 ? BufferKind::matrix : BufferKind::row;
}
BufferKind CrossEntropyOp::getResultKind(unsigned) { return BufferKind::row; }

void CrossEntropyOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t> buffers,
                              MutableArrayRef<NodeId> out) {
  NodeId largest = b.reduceMax(in[0]);
  NodeId total = b.reduceSum(b.exp(b.sub(in[0], largest)));
  NodeId lse = b.add(largest, b.log(total));
  NodeId labelled = b.lessEqual(b.constant(0), in[1]);
  // An unlabelled row gathers column 0 and drops it.
  NodeId column = b.select(labelled, in[1], b.constant(0));
  NodeId target =
      buffers[0] >= 0
          ? b.gather(buffers[0], column)
          : b.reduceSum(b.select(b.equal(b.columnIndex(), column), in[0], b.constant(0)));
  out[0] = b.select(labelled, b.sub(lse, target), b.constant(0));
  out[1] = lse;
}

void CrossEntropyOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                   MutableArrayRef<Value> out) {
  out[0] = CrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(), grads[0],
                                      getLogits(), getTargets(), getLse());
}

BufferKind CrossEntropyGradOp::getOperandKind(unsigned operand) {
  return operand == 1 ? BufferKind::matrix : BufferKind::row;
}
BufferKind CrossEntropyGradOp::getResultKind(unsigned) { return BufferKind::matrix; }

void CrossEntropyGradOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                                  MutableArrayRef<NodeId> out) {
  NodeId labelled = b.lessEqual(b.constant(0), in[2]);
  NodeId gradient = b.select(labelled, in[0], b.constant(0));
  NodeId probability = b.exp(b.sub(in[1], in[3]));
  NodeId isTarget = b.equal(b.columnIndex(), in[2]);
  out[0] = b.mul(gradient, b.sub(probability, b.select(isTarget, b.constant(1), b.constant(0))));
}

//===-- Sums that are row programs
//---------------------------------------------------------------===//

RowSpace RowSumOp::getRowSpace() { return rowSpaceOf(getInput().getType()); }
BufferKind RowSumOp::getOperandKind(unsigned) { return BufferKind::matrix; }
BufferKind RowSumOp::getResultKind(unsigned) { return BufferKind::row; }
void RowSumOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                        MutableArrayRef<NodeId> out) {
  out[0] = b.reduceSum(in[0]);
}
void RowSumOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                             MutableArrayRef<Value> out) {
  out[0] = BroadcastOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}

RowSpace ColumnPartialsOp::getRowSpace() { return rowSpaceOf(getInput().getType()); }
BufferKind ColumnPartialsOp::getOperandKind(unsigned) { return BufferKind::matrix; }
BufferKind ColumnPartialsOp::getResultKind(unsigned) { return BufferKind::columnPartial; }
void ColumnPartialsOp::buildRow(RowBuilder &, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                                MutableArrayRef<NodeId> out) {
  out[0] = in[0];
}

RowSpace CountValidOp::getRowSpace() {
  return {1, cast<RankedTensorType>(getTargets().getType()).getNumElements()};
}
BufferKind CountValidOp::getOperandKind(unsigned) { return BufferKind::matrix; }
BufferKind CountValidOp::getResultKind(unsigned) { return BufferKind::row; }
void CountValidOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                            MutableArrayRef<NodeId> out) {
  NodeId labelled = b.lessEqual(b.constant(0), in[0]);
  out[0] = b.reduceSum(b.select(labelled, b.constant(1), b.constant(0)));
}

//===-- Sums with kernels of their own
//-----------------------------------------------------------===//

void FoldRowsOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                               MutableArrayRef<Value> out) {
  out[0] = BroadcastOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}
void SumOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads, MutableArrayRef<Value> out) {
  out[0] = BroadcastOp::create(builder, getLoc(), getInput().getType(), grads[0]);
}

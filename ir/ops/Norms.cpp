// Layer norm, RMS norm and softmax: row bodies and backwards.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using row::BufferKind;
using RowBuilder = row::Builder;
using row::NodeId;

namespace {

NodeId mean(RowBuilder &b, NodeId x, int64_t columns) {
  return b.mul(b.reduceSum(x), b.constant(1.0 / static_cast<double>(columns)));
}

/// The input of a norm, normalised again for the backward: cheaper than keeping it.
Value normalised(OpBuilder &builder, Location loc, Value input, Value mean, Value rstd) {
  Value centred = mean ? SubOp::create(builder, loc, input, mean).getResult() : input;
  return MulOp::create(builder, loc, centred, rstd);
}

} // namespace

BufferKind LayerNormOp::getResultKind(unsigned result) {
  return result == 0 ? BufferKind::matrix : BufferKind::row;
}

void LayerNormOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                           MutableArrayRef<NodeId> out) {
  int64_t columns = getRowSpace().columns;
  NodeId average = mean(b, in[0], columns);
  NodeId centred = b.sub(in[0], average);
  NodeId variance = mean(b, b.mul(centred, centred), columns);
  NodeId rstd =
      b.div(b.constant(1), b.sqrt(b.add(variance, b.constant(getEpsilon().convertToDouble()))));
  out[0] = b.add(b.mul(b.mul(centred, rstd), in[1]), in[2]);
  out[1] = average;
  out[2] = rstd;
}

void LayerNormOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                                MutableArrayRef<Value> out) {
  out[0] = LayerNormGradOp::create(builder, getLoc(), getInput().getType(), grads[0], getInput(),
                                   getWeight(), getMean(), getRstd());
  Value unit = normalised(builder, getLoc(), getInput(), getMean(), getRstd());
  out[1] = sumToType(builder, getLoc(), MulOp::create(builder, getLoc(), grads[0], unit),
                     getWeight().getType());
  out[2] = sumToType(builder, getLoc(), grads[0], getBias().getType());
}

void LayerNormGradOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                               MutableArrayRef<NodeId> out) {
  int64_t columns = getRowSpace().columns;
  NodeId unit = b.mul(b.sub(in[1], in[3]), in[4]);
  NodeId weighted = b.mul(in[0], in[2]);
  NodeId meanWeighted = mean(b, weighted, columns);
  NodeId meanProduct = mean(b, b.mul(weighted, unit), columns);
  out[0] = b.mul(in[4], b.sub(b.sub(weighted, meanWeighted), b.mul(unit, meanProduct)));
}

BufferKind RmsNormOp::getResultKind(unsigned result) {
  return result == 0 ? BufferKind::matrix : BufferKind::row;
}

void RmsNormOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                         MutableArrayRef<NodeId> out) {
  NodeId meanSquare = mean(b, b.mul(in[0], in[0]), getRowSpace().columns);
  NodeId rstd =
      b.div(b.constant(1), b.sqrt(b.add(meanSquare, b.constant(getEpsilon().convertToDouble()))));
  out[0] = b.mul(b.mul(in[0], rstd), in[1]);
  out[1] = rstd;
}

void RmsNormOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                              MutableArrayRef<Value> out) {
  out[0] = RmsNormGradOp::create(builder, getLoc(), getInput().getType(), grads[0], getInput(),
                                 getWeight(), getRstd());
  Value unit = normalised(builder, getLoc(), getInput(), {}, getRstd());
  out[1] = sumToType(builder, getLoc(), MulOp::create(builder, getLoc(), grads[0], unit),
                     getWeight().getType());
}

void RmsNormGradOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                             MutableArrayRef<NodeId> out) {
  NodeId unit = b.mul(in[1], in[3]);
  NodeId weighted = b.mul(in[0], in[2]);
  NodeId meanProduct = mean(b, b.mul(weighted, unit), getRowSpace().columns);
  out[0] = b.mul(in[3], b.sub(weighted, b.mul(unit, meanProduct)));
}

void SoftmaxOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                         MutableArrayRef<NodeId> out) {
  NodeId largest = b.reduceMax(in[0]);
  // In a row of -inf every difference is taken from 0 instead, so that exp gives 0 and not NaN.
  NodeId nothing = b.lessEqual(largest, b.constant(-std::numeric_limits<double>::infinity()));
  NodeId shifted = b.exp(b.sub(in[0], b.select(nothing, b.constant(0), largest)));
  NodeId total = b.reduceSum(shifted);
  out[0] = b.mul(shifted, b.select(nothing, b.constant(0), b.div(b.constant(1), total)));
}

void SoftmaxOp::buildBackward(OpBuilder &builder, ArrayRef<Value> grads,
                              MutableArrayRef<Value> out) {
  out[0] = SoftmaxGradOp::create(builder, getLoc(), getType(), grads[0], getResult());
}

void SoftmaxGradOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                             MutableArrayRef<NodeId> out) {
  NodeId inner = b.reduceSum(b.mul(in[0], in[1]));
  out[0] = b.mul(in[1], b.sub(in[0], inner));
}

// Optimizer updates as row bodies, and what the cluster op answers.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc;
using namespace gradc::nn;
using RowBuilder = row::Builder;
using row::NodeId;

void AdamwOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                       MutableArrayRef<NodeId> out) {
  NodeId p = in[0], m = in[2], v = in[3], lr = in[5], beta1 = in[6], beta2 = in[7], eps = in[8];
  NodeId one = b.constant(1);
  NodeId g = b.mul(in[1], in[4]);
  NodeId newM = b.add(b.mul(beta1, m), b.mul(b.sub(one, beta1), g));
  NodeId newV = b.add(b.mul(beta2, v), b.mul(b.sub(one, beta2), b.mul(g, g)));
  // One division an element: lr/correction1 and 1/sqrt(correction2) are one value a launch.
  NodeId denominator = b.add(b.mul(b.sqrt(newV), b.div(one, b.sqrt(in[11]))), eps);
  NodeId update = b.div(b.mul(newM, b.div(lr, in[10])), denominator);
  NodeId kept = getDecay() ? b.mul(p, b.sub(one, b.mul(lr, in[9]))) : p;
  out[0] = b.sub(kept, update);
  out[1] = newM;
  out[2] = newV;
}

void SgdOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                     MutableArrayRef<NodeId> out) {
  NodeId g = b.mul(in[1], in[3]);
  if (getDecay())
    g = b.add(g, b.mul(in[6], in[0]));
  out[1] = b.add(b.mul(in[5], in[2]), g);
  out[0] = b.sub(in[0], b.mul(in[4], out[1]));
}

void LionOp::buildRow(RowBuilder &b, ArrayRef<NodeId> in, ArrayRef<int32_t>,
                      MutableArrayRef<NodeId> out) {
  NodeId one = b.constant(1), zero = b.constant(0), lr = in[4];
  NodeId g = b.mul(in[1], in[3]);
  NodeId blend = b.add(b.mul(in[5], in[2]), b.mul(b.sub(one, in[5]), g));
  // sign(x), 0 at 0; NaN compares false and passes through.
  NodeId negative = b.select(b.lessThan(blend, zero), b.constant(-1), blend);
  NodeId sign = b.select(b.lessThan(zero, blend), one, negative);
  NodeId kept = getDecay() ? b.mul(in[0], b.sub(one, b.mul(lr, in[7]))) : in[0];
  out[0] = b.sub(kept, b.mul(lr, sign));
  out[1] = b.add(b.mul(in[6], in[2]), b.mul(b.sub(one, in[6]), g));
}

FusionRole FusedOp::getFusionRole() { return FusionRole::row; }

int64_t FusedOp::getFlops() {
  int64_t flops = 0;
  for (auto op : getBody().front().getOps<CostOpInterface>())
    flops += op.getFlops();
  return flops;
}

// Row programs that a transformer's step is made of, for tests and benches.
#pragma once

#include "ir/row/Builder.h"

#include <cmath>
#include <limits>

namespace gradc::row::samples {

/// Buffers: x, residual, gamma, beta, sum out, y out, mean out, rstd out.
inline Program residualLayerNorm(int64_t columns, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t x = b.matrix(dtype), residual = b.matrix(dtype), gamma = b.column(), beta = b.column();
  int32_t sum = b.matrix(dtype), y = b.matrix(dtype), mean = b.row(), rstd = b.row();
  NodeId added = b.add(b.load(x), b.load(residual));
  b.store(sum, added);
  NodeId scale = b.constant(1.0 / static_cast<double>(columns));
  NodeId m = b.mul(b.reduceSum(added), scale);
  NodeId centred = b.sub(b.reload(sum), m);
  NodeId variance = b.mul(b.reduceSum(b.mul(centred, centred)), scale);
  NodeId r = b.rsqrt(b.add(variance, b.constant(1e-5)));
  b.store(y, b.add(b.mul(b.mul(centred, r), b.load(gamma)), b.load(beta)));
  b.storeRow(mean, m);
  b.storeRow(rstd, r);
  return b.take();
}

/// Buffers: dy, x, gamma, mean, rstd, dresidual, dx out, dgamma partials, dbeta partials.
inline Program layerNormBackward(int64_t columns, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t dy = b.matrix(dtype), x = b.matrix(dtype), gamma = b.column(), mean = b.row();
  int32_t rstd = b.row(), residual = b.matrix(dtype), dx = b.matrix(dtype);
  int32_t dgamma = b.columnPartial(), dbeta = b.columnPartial();
  NodeId g = b.load(dy), r = b.load(rstd);
  NodeId normal = b.mul(b.sub(b.load(x), b.load(mean)), r);
  NodeId scaled = b.mul(g, b.load(gamma));
  b.accumulateColumn(dgamma, b.mul(g, normal));
  b.accumulateColumn(dbeta, g);
  NodeId scale = b.constant(1.0 / static_cast<double>(columns));
  NodeId meanOfScaled = b.mul(b.reduceSum(scaled), scale);
  NodeId meanOfProduct = b.mul(b.reduceSum(b.mul(scaled, normal)), scale);
  NodeId inner = b.sub(b.sub(scaled, meanOfScaled), b.mul(normal, meanOfProduct));
  b.store(dx, b.add(b.load(residual), b.mul(r, inner)));
  return b.take();
}

/// x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU, without the loss of
/// digits of 1 + tanh(u) where u is below 0.
struct GeluNodes {
  NodeId sigmoid, slope; ///< slope: derivative of 2u
};
inline GeluNodes geluTanhNodes(Builder &b, NodeId x) {
  const double linear = 2 * std::sqrt(2 / 3.14159265358979323846), cubic = linear * 0.044715;
  NodeId square = b.mul(x, x);
  NodeId minusTwoU = b.mul(x, b.sub(b.constant(-linear), b.mul(square, b.constant(cubic))));
  NodeId sigmoid = b.div(b.constant(1), b.add(b.constant(1), b.exp(minusTwoU)));
  NodeId slope = b.add(b.mul(square, b.constant(3 * cubic)), b.constant(linear));
  return {sigmoid, slope};
}

/// Buffers: x, bias, y out.
inline Program biasGeluTanh(int64_t columns, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t in = b.matrix(dtype), bias = b.column(), out = b.matrix(dtype);
  NodeId x = b.add(b.load(in), b.load(bias));
  b.store(out, b.mul(x, geluTanhNodes(b, x).sigmoid));
  return b.take();
}

/// Buffers: x, bias, dy, dx out, dbias partials.
inline Program biasGeluTanhBackward(int64_t columns, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t in = b.matrix(dtype), bias = b.column(), dy = b.matrix(dtype), dx = b.matrix(dtype);
  int32_t dbias = b.columnPartial();
  NodeId x = b.add(b.load(in), b.load(bias));
  GeluNodes gelu = geluTanhNodes(b, x);
  NodeId rest = b.mul(b.sub(b.constant(1), gelu.sigmoid), gelu.slope);
  NodeId slope = b.add(gelu.sigmoid, b.mul(b.mul(x, gelu.sigmoid), rest));
  NodeId result = b.mul(b.load(dy), slope);
  b.store(dx, result);
  b.accumulateColumn(dbias, result);
  return b.take();
}

/// Buffers: x, bias, y out: the erf form.
inline Program biasGeluErf(int64_t columns) {
  Builder b(columns);
  int32_t in = b.matrix(), bias = b.column(), out = b.matrix();
  NodeId x = b.add(b.load(in), b.load(bias));
  NodeId cdf = b.mul(b.constant(0.5), b.add(b.constant(1), b.erf(b.mul(x, b.constant(M_SQRT1_2)))));
  b.store(out, b.mul(x, cdf));
  return b.take();
}

/// Buffers: x, bias, dy, dx out, dbias partials: the erf form.
inline Program biasGeluErfBackward(int64_t columns) {
  Builder b(columns);
  int32_t in = b.matrix(), bias = b.column(), dy = b.matrix(), dx = b.matrix();
  int32_t dbias = b.columnPartial();
  NodeId x = b.add(b.load(in), b.load(bias));
  NodeId cdf = b.mul(b.constant(0.5), b.add(b.constant(1), b.erf(b.mul(x, b.constant(M_SQRT1_2)))));
  NodeId density = b.mul(b.exp(b.mul(b.mul(x, x), b.constant(-0.5))),
                         b.constant(1 / std::sqrt(2 * 3.14159265358979323846)));
  NodeId result = b.mul(b.load(dy), b.add(cdf, b.mul(x, density)));
  b.store(dx, result);
  b.accumulateColumn(dbias, result);
  return b.take();
}

/// Flat. Buffers: gate, up, out: silu(gate) * up.
inline Program swiGlu(Dtype dtype = Dtype::f32) {
  Builder b = Builder::flat();
  int32_t gate = b.matrix(dtype), up = b.matrix(dtype), out = b.matrix(dtype);
  NodeId x = b.load(gate);
  NodeId sigmoid = b.div(b.constant(1), b.add(b.constant(1), b.exp(b.neg(x))));
  b.store(out, b.mul(b.mul(x, sigmoid), b.load(up)));
  return b.take();
}

/// Rows are queries of heads one after another, columns keys. Buffers: scores, out.
inline Program causalSoftmax(int64_t columns, double scale, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t scores = b.matrix(dtype), out = b.matrix(dtype);
  NodeId query = b.remainderInt(b.rowIndex(), b.constant(static_cast<double>(columns)));
  NodeId visible = b.lessEqual(b.columnIndex(), query);
  NodeId x = b.select(visible, b.mul(b.load(scores), b.constant(scale)),
                      b.constant(-std::numeric_limits<double>::infinity()));
  NodeId e = b.exp(b.sub(x, b.reduceMax(x)));
  b.store(out, e);
  NodeId sum = b.reduceSum(e);
  b.store(out, b.mul(b.reload(out), b.div(b.constant(1), sum)));
  return b.take();
}

/// Buffers: logits, labels i32, loss out, dlogits out (may be the logits). A label below 0 does not
/// count: its loss and gradient are 0.
inline Program crossEntropy(int64_t columns, double scale, Dtype dtype = Dtype::f32) {
  Builder b(columns);
  int32_t logits = b.matrix(dtype), labels = b.row(Dtype::i32), loss = b.row();
  int32_t out = b.matrix(dtype);
  NodeId x = b.load(logits), label = b.load(labels);
  NodeId valid = b.lessEqual(b.constant(0), label);
  NodeId target = b.gather(logits, b.select(valid, label, b.constant(0)));
  NodeId max = b.reduceMax(x);
  NodeId e = b.exp(b.sub(x, max));
  NodeId sum = b.reduceSum(e);
  NodeId weight = b.select(valid, b.constant(scale), b.constant(0));
  b.store(out, e);
  NodeId p = b.mul(b.reload(out), b.div(weight, sum));
  NodeId hot = b.equal(b.columnIndex(), label);
  b.store(out, b.select(hot, b.sub(p, weight), p));
  b.storeRow(loss, b.mul(weight, b.sub(b.add(b.log(sum), max), target)));
  return b.take();
}

/// Flat. Buffers: w, g, m, v (updated in place), bf16 copy of w where `copy`, learning rate, the
/// two bias corrections 1 / (1 - beta^t).
inline Program adamw(bool copy) {
  Builder b = Builder::flat();
  int32_t w = b.matrix(), g = b.matrix(), m = b.matrix(), v = b.matrix();
  int32_t narrow = copy ? b.matrix(Dtype::bf16) : -1;
  int32_t rate = b.scalar(), correction1 = b.scalar(), correction2 = b.scalar();
  NodeId gradient = b.load(g), weight = b.load(w);
  NodeId first = b.add(b.mul(b.constant(0.9), b.load(m)), b.mul(b.constant(0.1), gradient));
  NodeId second =
      b.add(b.mul(b.constant(0.95), b.load(v)), b.mul(b.constant(0.05), b.mul(gradient, gradient)));
  NodeId root = b.add(b.sqrt(b.mul(second, b.load(correction2))), b.constant(1e-8));
  NodeId step =
      b.add(b.div(b.mul(first, b.load(correction1)), root), b.mul(b.constant(0.1), weight));
  NodeId next = b.sub(weight, b.mul(b.load(rate), step));
  b.store(m, first);
  b.store(v, second);
  b.store(w, next);
  if (copy)
    b.store(narrow, next);
  return b.take();
}

/// Buffers: x, seed, step, first row, out: inverted dropout.
inline Program dropout(int64_t columns, double probability) {
  Builder b = columns == 0 ? Builder::flat() : Builder(columns);
  int32_t in = b.matrix(), seed = b.scalar(Dtype::i32), step = b.scalar(Dtype::i32);
  int32_t firstRow = b.scalar(Dtype::i32), out = b.matrix();
  NodeId number = b.uniform(b.load(seed), b.load(step), b.load(firstRow), /*stream=*/7);
  NodeId kept = b.lessEqual(b.constant(probability), number);
  NodeId scaled = b.mul(b.load(in), b.constant(1 / (1 - probability)));
  b.store(out, b.select(kept, scaled, b.constant(0)));
  return b.take();
}

} // namespace gradc::row::samples

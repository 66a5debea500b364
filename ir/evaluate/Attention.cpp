// Reference values of attention and its gradients: whole score rows, one query at a time.
#include "ir/Nn.h"
#include "ir/evaluate/Dropout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace gradc::nn;

namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// Where the elements of the heads lie, and which keys a query sees.
struct Geometry {
  int64_t batch, heads, kvHeads, seq, headDim, window;
  double scale;
  bool causal;
  const HostTensor *firstKeys;        ///< of each token, or null
  std::optional<DropoutMask> dropout; ///< of the softmax's results

  /// `mask`: the operands behind the tensors: first keys, what random numbers are keyed by.
  template <typename Op>
  static Geometry of(Op op, const HostTensor &query, ArrayRef<HostTensor> mask) {
    int64_t batch = op.getBatch(), heads = op.getHeads();
    ArrayRef<HostTensor> keys = mask.drop_front(op.getFirstKey() ? 1 : 0);
    return {batch,
            heads,
            static_cast<int64_t>(op.getKvHeads()),
            query.rows() / batch,
            query.columns() / heads,
            static_cast<int64_t>(op.getWindow()),
            op.getScale().convertToDouble(),
            op.getCausal(),
            op.getFirstKey() ? &mask.front() : nullptr,
            keys.empty() ? std::nullopt : std::optional(DropoutMask(op.getDropout(), keys))};
  }

  /// Index of the first element of a head's row in query or result, and in key or value.
  int64_t queryRow(int64_t b, int64_t h, int64_t i) const {
    return ((b * seq + i) * heads + h) * headDim;
  }
  int64_t keyRow(int64_t b, int64_t h, int64_t j) const {
    return ((b * seq + j) * kvHeads + h / (heads / kvHeads)) * headDim;
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    return (!causal || j <= i) && (window == 0 || j > i - window) &&
           (!firstKeys || static_cast<double>(j) >= (*firstKeys)[b * seq + i]);
  }
  /// A softmax's result as dropout leaves it.
  double drop(double x, int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!dropout)
      return x;
    int64_t row = (b * heads + h) * seq + i;
    return dropout->apply(x, (dropout->firstRow * heads + row) * seq + j);
  }
  double dot(const HostTensor &x, int64_t atX, const HostTensor &y, int64_t atY) const {
    double sum = 0;
    for (int64_t d = 0; d < headDim; ++d)
      sum += x[atX + d] * y[atY + d];
    return sum;
  }
  /// target row += factor * source row
  void addRow(HostTensor &target, int64_t atTarget, double factor, const HostTensor &source,
              int64_t atSource) const {
    for (int64_t d = 0; d < headDim; ++d)
      target[atTarget + d] += factor * source[atSource + d];
  }
  template <typename Function> void forEachQuery(Function f) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < seq; ++i)
          f(b, h, i);
  }
};

} // namespace

LogicalResult AttentionOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2];
  Geometry g = Geometry::of(*this, query, operands.drop_front(3));
  std::vector<double> scores(g.seq);
  g.forEachQuery([&](int64_t b, int64_t h, int64_t i) {
    double largest = minusInfinity, sum = 0;
    bool seesAny = false;
    for (int64_t j = 0; j < g.seq; ++j) {
      scores[j] = g.sees(b, i, j)
                      ? g.scale * g.dot(query, g.queryRow(b, h, i), key, g.keyRow(b, h, j))
                      : minusInfinity;
      largest = std::max(largest, scores[j]);
      seesAny |= scores[j] != minusInfinity; // true of a NaN, which stays
    }
    double &lse = results[1][(b * g.heads + h) * g.seq + i];
    if (!seesAny) { // the result's zeros stand
      lse = minusInfinity;
      return;
    }
    for (int64_t j = 0; j < g.seq; ++j)
      sum += std::exp(scores[j] - largest);
    lse = largest + std::log(sum);
    for (int64_t j = 0; j < g.seq; ++j)
      if (scores[j] != minusInfinity) { // of no weight, whatever its value holds
        double probability = std::exp(scores[j] - largest) / sum;
        g.addRow(results[0], g.queryRow(b, h, i), g.drop(probability, b, h, i, j), value,
                 g.keyRow(b, h, j));
      }
  });
  return success();
}

LogicalResult AttentionGradOp::evaluate(ArrayRef<HostTensor> operands,
                                        MutableArrayRef<HostTensor> results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2],
                   &output = operands[3], &lse = operands[4], &gradient = operands[5];
  Geometry g = Geometry::of(*this, query, operands.drop_front(6));
  g.forEachQuery([&](int64_t b, int64_t h, int64_t i) {
    int64_t atQuery = g.queryRow(b, h, i);
    double delta = g.dot(gradient, atQuery, output, atQuery);
    double rowLse = lse[(b * g.heads + h) * g.seq + i];
    for (int64_t j = 0; j < g.seq; ++j) {
      if (!g.sees(b, i, j))
        continue;
      int64_t atKey = g.keyRow(b, h, j);
      double raw = g.scale * g.dot(query, atQuery, key, atKey);
      if (raw == minusInfinity)
        continue;
      double probability = std::exp(raw - rowLse);
      double dropped = g.drop(g.dot(gradient, atQuery, value, atKey), b, h, i, j);
      double score = probability * (dropped - delta);
      g.addRow(results[0], atQuery, g.scale * score, key, atKey);
      g.addRow(results[1], atKey, g.scale * score, query, atQuery);
      g.addRow(results[2], atKey, g.drop(probability, b, h, i, j), gradient, atQuery);
    }
  });
  return success();
}

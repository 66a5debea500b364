// See AttentionReference.h.
#include "tests/numerics/AttentionReference.h"

#include "ir/row/Philox.h"

#include <algorithm>
#include <cmath>

namespace gradc::codegen::attention_test {

bool sees(const AttentionSpec &s, int64_t i, int64_t j) {
  if (s.window > 0 && j <= i - s.window)
    return false;
  return !(s.causal || s.window > 0) || j <= i;
}

double dropoutFactor(const AttentionSpec &s, const RandomKeys &keys, int64_t b, int64_t h,
                     int64_t i, int64_t j) {
  if (s.dropout == 0)
    return 1;
  int64_t row = keys.firstRow * s.heads + (b * s.heads + h) * s.seq + i;
  float number = row::philoxUniform(static_cast<uint32_t>(keys.seed) +
                                        static_cast<uint32_t>(keys.stream) * row::philoxStreamStep,
                                    static_cast<uint32_t>(keys.step), 0, row * s.seq + j);
  return number < static_cast<float>(s.dropout) ? 0 : 1 / (1 - s.dropout);
}

namespace {

/// The same in sequence b, with its documents.
bool seesWithDocuments(const AttentionSpec &s, const Inputs &in, int64_t b, int64_t i, int64_t j) {
  return sees(s, i, j) && (!s.documents || in.firstKeys[b * s.seq + i] <= j);
}

double dot(const float *x, const float *y, int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d)
    sum += static_cast<double>(x[d]) * y[d];
  return sum;
}

/// One query row: its softmax p over the keys it sees (others stay 0); returns its lse.
double softmaxRow(const AttentionSpec &s, const Inputs &in, int64_t b, int64_t h, int64_t i,
                  std::vector<double> &p) {
  int64_t kv = h / s.group();
  double maximum = -INFINITY, sum = 0;
  std::fill(p.begin(), p.end(), 0);
  for (int64_t j = 0; j < s.seq; ++j)
    if (seesWithDocuments(s, in, b, i, j)) {
      p[j] = s.scale * dot(in.q.row(b, i, h), in.k.row(b, j, kv), s.headDim);
      maximum = std::max(maximum, p[j]);
    }
  if (maximum == -INFINITY) {
    std::fill(p.begin(), p.end(), 0);
    return -INFINITY;
  }
  for (int64_t j = 0; j < s.seq; ++j)
    if (seesWithDocuments(s, in, b, i, j))
      sum += p[j] = std::exp(p[j] - maximum);
  for (double &x : p)
    x /= sum;
  return maximum + std::log(sum);
}

/// One query's part of the results, p being its weights.
void addQuery(const AttentionSpec &s, const Inputs &in, int64_t b, int64_t h, int64_t i,
              const std::vector<double> &p, Reference &r) {
  int64_t D = s.headDim, kv = h / s.group(), atQuery = ((b * s.seq + i) * s.heads + h) * D;
  const float *q = in.q.row(b, i, h), *dO = in.dO.row(b, i, h);
  for (int64_t j = 0; j < s.seq; ++j) {
    double weight = p[j] == 0 ? 0 : p[j] * dropoutFactor(s, in.random, b, h, i, j);
    for (int64_t d = 0; d < D && p[j] != 0; ++d)
      r.o[atQuery + d] += weight * in.v.row(b, j, kv)[d];
  }
  double delta = 0;
  for (int64_t d = 0; d < D; ++d)
    delta += (in.o ? in.o[atQuery + d] : r.o[atQuery + d]) * dO[d];
  for (int64_t j = 0; j < s.seq; ++j) {
    if (p[j] == 0)
      continue;
    const float *key = in.k.row(b, j, kv), *value = in.v.row(b, j, kv);
    double factor = dropoutFactor(s, in.random, b, h, i, j);
    double dS = p[j] * (dot(dO, value, D) * factor - delta) * s.scale;
    int64_t atKey = ((b * s.seq + j) * s.kvHeads + kv) * D;
    for (int64_t d = 0; d < D; ++d) {
      r.dq[atQuery + d] += dS * key[d];
      r.dk[atKey + d] += dS * q[d];
      r.dv[atKey + d] += p[j] * factor * dO[d];
    }
  }
}

} // namespace

Reference reference(const AttentionSpec &s, const Inputs &in) {
  int64_t queryElements = s.batch * s.seq * s.heads * s.headDim;
  int64_t keyElements = s.batch * s.seq * s.kvHeads * s.headDim;
  Reference r;
  r.o.resize(queryElements);
  r.dq.resize(queryElements);
  r.dk.resize(keyElements);
  r.dv.resize(keyElements);
  r.lse.resize(s.batch * s.heads * s.seq);
  std::vector<double> p(s.seq);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.seq; ++i) {
        r.lse[(b * s.heads + h) * s.seq + i] = softmaxRow(s, in, b, h, i, p);
        addQuery(s, in, b, h, i, p, r);
      }
  return r;
}

} // namespace gradc::codegen::attention_test

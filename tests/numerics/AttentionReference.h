// Attention in f64 by plain loops, on strided f32 buffers, for tests.
#pragma once

#include "codegen/cpu/Attention.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gradc::codegen::attention_test {

/// A [batch, seq, heads, headDim] view of a buffer.
template <typename T> struct View {
  T *base = nullptr;
  AttentionSpec::Strides strides;
  T *row(int64_t b, int64_t t, int64_t h) const {
    return base + b * strides.batch + t * strides.token + h * strides.head;
  }
};

/// Contiguous f64 results.
struct Reference {
  std::vector<double> o, lse, dq, dk, dv;
};

struct Inputs {
  View<const float> q, k, v, dO;
};

/// Does query i see key j?
inline bool sees(const AttentionSpec &s, int64_t i, int64_t j) {
  if (s.window > 0 && j <= i - s.window)
    return false;
  return !(s.causal || s.window > 0) || j <= i;
}

namespace detail {

inline double dot(const float *x, const float *y, int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d)
    sum += static_cast<double>(x[d]) * y[d];
  return sum;
}

/// One query row: its softmax p over the keys it sees (others stay 0); returns its lse.
inline double softmaxRow(const AttentionSpec &s, const Inputs &in, int64_t b, int64_t h, int64_t i,
                         std::vector<double> &p) {
  int64_t kv = h / (s.heads / s.kvHeads);
  double maximum = -INFINITY, sum = 0;
  std::fill(p.begin(), p.end(), 0);
  for (int64_t j = 0; j < s.seq; ++j)
    if (sees(s, i, j)) {
      p[j] = s.scale * dot(in.q.row(b, i, h), in.k.row(b, j, kv), s.headDim);
      maximum = std::max(maximum, p[j]);
    }
  for (int64_t j = 0; j < s.seq; ++j)
    if (sees(s, i, j))
      sum += p[j] = std::exp(p[j] - maximum);
  for (double &x : p)
    x /= sum;
  return maximum + std::log(sum);
}

} // namespace detail

inline Reference reference(const AttentionSpec &s, const Inputs &in) {
  int64_t D = s.headDim, rows = s.batch * s.seq;
  Reference r;
  r.o.resize(rows * s.heads * D);
  r.dq.resize(rows * s.heads * D);
  r.dk.resize(rows * s.kvHeads * D);
  r.dv.resize(rows * s.kvHeads * D);
  r.lse.resize(s.batch * s.heads * s.seq);
  std::vector<double> p(s.seq);
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.seq; ++i) {
        int64_t kv = h / (s.heads / s.kvHeads);
        r.lse[(b * s.heads + h) * s.seq + i] = detail::softmaxRow(s, in, b, h, i, p);
        double *o = &r.o[((b * s.seq + i) * s.heads + h) * D];
        double *dq = &r.dq[((b * s.seq + i) * s.heads + h) * D];
        const float *q = in.q.row(b, i, h), *dO = in.dO.row(b, i, h);
        double delta = 0;
        for (int64_t j = 0; j < s.seq; ++j)
          for (int64_t d = 0; d < D && sees(s, i, j); ++d)
            o[d] += p[j] * in.v.row(b, j, kv)[d];
        for (int64_t d = 0; d < D; ++d)
          delta += o[d] * dO[d];
        for (int64_t j = 0; j < s.seq; ++j) {
          if (!sees(s, i, j))
            continue;
          const float *k = in.k.row(b, j, kv), *v = in.v.row(b, j, kv);
          double dS = p[j] * (detail::dot(dO, v, D) - delta) * s.scale;
          double *dk = &r.dk[((b * s.seq + j) * s.kvHeads + kv) * D];
          double *dv = &r.dv[((b * s.seq + j) * s.kvHeads + kv) * D];
          for (int64_t d = 0; d < D; ++d) {
            dq[d] += dS * k[d];
            dk[d] += dS * q[d];
            dv[d] += p[j] * dO[d];
          }
        }
      }
  return r;
}

} // namespace gradc::codegen::attention_test

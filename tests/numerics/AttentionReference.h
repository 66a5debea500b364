// Attention in f64 by plain loops, on strided f32 buffers, for tests.
#pragma once

#include "codegen/kernels/AttentionSpec.h"

#include <vector>

namespace gradc::codegen::attention_test {

/// A [batch, seq, heads, headDim] view of a buffer.
struct View {
  const float *base = nullptr;
  AttentionSpec::Strides strides;
  const float *row(int64_t b, int64_t t, int64_t h) const {
    return base + b * strides.batch + t * strides.token + h * strides.head;
  }
};

/// What dropout's numbers are keyed by.
struct RandomKeys {
  int32_t seed = 0, step = 0, firstRow = 0, stream = 5;
};

struct Inputs {
  View q, k, v, dO;
  RandomKeys random;
  const int32_t *firstKeys = nullptr; ///< [batch, seq], with documents
  const float *o = nullptr;           ///< contiguous, as the backward reads it; null: the exact one
};

/// Contiguous f64 results.
struct Reference {
  std::vector<double> o, lse, dq, dk, dv;
};

/// Does query i see key j, as far as the spec says?
bool sees(const AttentionSpec &s, int64_t i, int64_t j);

/// What dropout multiplies the weight of (b, h, i, j) by: 0 or 1 / (1 - rate).
double dropoutFactor(const AttentionSpec &s, const RandomKeys &keys, int64_t b, int64_t h,
                     int64_t i, int64_t j);

/// A key of weight 0 has no effect on its query, not even where its elements are infinite.
Reference reference(const AttentionSpec &s, const Inputs &in);

} // namespace gradc::codegen::attention_test

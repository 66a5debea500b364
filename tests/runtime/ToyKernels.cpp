// Loops over numbers, in a file of their own: optimised under sanitizers too
// (cmake/Toolchain.cmake).
#include "tests/runtime/ToyKernels.h"

#include <algorithm>
#include <cmath>

#include "tests/runtime/ToyExecutable.h"

namespace gradc::rt::toy_kernels {
namespace {

constexpr int64_t V = toyVocab, D = toyWidth;
using Buffers = void *const *;

float *floats(Buffers buffers, int i) { return static_cast<float *>(buffers[i]); }
const int32_t *ints(Buffers buffers, int i) { return static_cast<const int32_t *>(buffers[i]); }

} // namespace

void zero(Buffers b, int64_t extent, int64_t) {
  for (int64_t i = 0; i < extent; ++i)
    floats(b, 0)[i] = 0;
}
void countValid(Buffers b, int64_t extent, int64_t) {
  float count = 0;
  for (int64_t i = 0; i < extent; ++i)
    count += ints(b, 0)[i] >= 0;
  *floats(b, 1) = count;
}
void gather(Buffers b, int64_t, int64_t row) {
  for (int64_t d = 0; d < D; ++d)
    floats(b, 2)[row * D + d] = floats(b, 1)[ints(b, 0)[row] * D + d];
}
void crossEntropy(Buffers b, int64_t, int64_t row) {
  float *logits = floats(b, 0) + row * V;
  int32_t target = ints(b, 1)[row];
  float valid = *floats(b, 2), most = logits[0];
  for (int64_t v = 1; v < V; ++v)
    most = std::max(most, logits[v]);
  float sum = 0;
  for (int64_t v = 0; v < V; ++v)
    sum += std::exp(logits[v] - most);
  floats(b, 3)[row] = target < 0 ? 0 : std::log(sum) + most - logits[target];
  for (int64_t v = 0; v < V; ++v) {
    float share = std::exp(logits[v] - most) / sum - (v == target ? 1.f : 0.f);
    logits[v] = target < 0 ? 0 : share / valid;
  }
}
void addLosses(Buffers b, int64_t extent, int64_t) {
  for (int64_t i = 0; i < extent; ++i)
    *floats(b, 1) += floats(b, 0)[i];
}
void meanLoss(Buffers b, int64_t, int64_t) { *floats(b, 0) /= *floats(b, 1); }
void scatter(Buffers b, int64_t extent, int64_t) {
  for (int64_t row = 0; row < extent; ++row)
    for (int64_t d = 0; d < D; ++d)
      floats(b, 2)[ints(b, 0)[row] * D + d] += floats(b, 1)[row * D + d];
}
void norm(Buffers b, int64_t extent, int64_t) {
  double sum = 0;
  for (int64_t i = 0; i < extent; ++i)
    sum += double(floats(b, 0)[i]) * double(floats(b, 0)[i]);
  *floats(b, 1) = float(std::sqrt(sum));
}
void update(Buffers b, int64_t, int64_t row) {
  float clip = *floats(b, 5), total = *floats(b, 6);
  float scale = clip > 0 && total > clip ? clip / total : 1;
  for (int64_t i = row * D; i < (row + 1) * D; ++i) {
    float &m = floats(b, 1)[i];
    m = *floats(b, 4) * m + scale * floats(b, 2)[i];
    floats(b, 0)[i] -= *floats(b, 3) * m;
  }
}
void pickRow(Buffers b, int64_t, int64_t v) { floats(b, 2)[v] = floats(b, 0)[*ints(b, 1) * V + v]; }

} // namespace gradc::rt::toy_kernels

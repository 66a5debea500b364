// The matrix products of GPT-2 124M at 1024 tokens, which the product benches time.
#pragma once

#include <cstdint>
#include <vector>

namespace gradc::bench {

struct Shape {
  const char *name;
  int64_t m, n, k;
  bool aTransposed, bTransposed;
  int64_t batch; ///< heads
  int64_t calls; ///< a step; 0: not of a step
};

inline const std::vector<Shape> gpt2Products = {
    {"qkv forward", 1024, 2304, 768, false, false, 1, 12},
    {"qkv dX", 1024, 768, 2304, false, true, 1, 12},
    {"qkv dW", 768, 2304, 1024, true, false, 1, 12},
    {"proj forward", 1024, 768, 768, false, false, 1, 12},
    {"proj dX", 1024, 768, 768, false, true, 1, 12},
    {"proj dW", 768, 768, 1024, true, false, 1, 12},
    {"fc1 forward", 1024, 3072, 768, false, false, 1, 12},
    {"fc1 dX", 1024, 768, 3072, false, true, 1, 12},
    {"fc1 dW", 768, 3072, 1024, true, false, 1, 12},
    {"fc2 forward", 1024, 768, 3072, false, false, 1, 12},
    {"fc2 dX", 1024, 3072, 768, false, true, 1, 12},
    {"fc2 dW", 3072, 768, 1024, true, false, 1, 12},
    {"head forward", 1024, 50257, 768, false, true, 1, 1},
    {"head dX", 1024, 768, 50257, false, false, 1, 1},
    {"head dW", 50257, 768, 1024, true, false, 1, 1},
    {"attention QK'", 256, 256, 64, false, true, 48, 12},
    {"attention PV", 256, 64, 256, false, false, 48, 12},
    {"attention dV", 256, 64, 256, true, false, 48, 12},
};

} // namespace gradc::bench

// A tensor of f64 values in host memory: what the interpreter computes on. Integer tensors hold
// their values exactly.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <vector>

namespace gradc::nn {

struct HostTensor {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> values; ///< row-major

  HostTensor() = default;
  explicit HostTensor(llvm::ArrayRef<int64_t> ofShape) : shape(ofShape) {
    int64_t count = 1;
    for (int64_t dim : shape)
      count *= dim;
    values.assign(static_cast<size_t>(count), 0.0);
  }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  /// The last dimension (1 for a scalar), and all others flattened.
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return columns() == 0 ? 0 : size() / columns(); }
  double &operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
};

} // namespace gradc::nn

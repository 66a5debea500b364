// Comparison of computed values with their reference.
#pragma once

#include "ir/HostTensor.h"

#include <limits>
#include <string>

namespace gradc::nn {

/// Bounds on the difference of two tensors. All that are given must hold, save that a difference of
/// at most `absolute` always passes.
struct Tolerances {
  /// Of the largest difference, relative to the largest magnitude expected.
  double norm = 1e-9;
  /// Of each difference, relative to the magnitude of the element expected.
  double elementwise = std::numeric_limits<double>::infinity();
  double absolute = 0;
};

struct Comparison {
  bool passed = false;
  double normError = 0;        ///< largest difference / largest magnitude expected
  double elementwiseError = 0; ///< largest relative difference of an element
  int64_t worst = -1; ///< index of the largest difference, or of the first that is no number
  std::string report; ///< one line: what differs, where, both values; empty where passed
};

/// Compares in f64. Shapes must be equal, infinities equal one by one. NaN never passes, not even
/// beside NaN; the report says on which side it stands.
Comparison compareValues(const HostTensor &actual, const HostTensor &expected,
                         const Tolerances &tolerances = {});

} // namespace gradc::nn

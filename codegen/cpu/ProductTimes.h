// Who multiplies faster on this machine. The driver measures and implements it, so that code
// generation never runs what it makes.
#pragma once

#include "codegen/cpu/Gemm.h"

namespace gradc::codegen {

class ProductTimes {
public:
  virtual ~ProductTimes() = default;

  /// Whether this product is to be a kernel of ours rather than the library's. `spec` is one that
  /// the library can be given: contiguous matrices of f32, inputs not rounded.
  virtual bool prefersGenerated(const GemmSpec &spec) = 0;
};

} // namespace gradc::codegen

// What cuBLASLt holds of one shape of product: descriptors, layouts and the chosen algorithm.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/CublasLtLibrary.h"
#include "runtime/cuda/CublasLtShape.h"

namespace gradc::rt {

class CublasLtPlan {
public:
  /// Makes the descriptors. The library outlives the plan.
  static Expected<std::unique_ptr<CublasLtPlan>>
  make(const CublasLtLibrary &library, cublaslt::Handle handle, const CublasLtShape &shape);
  ~CublasLtPlan();
  CublasLtPlan(const CublasLtPlan &) = delete;
  CublasLtPlan &operator=(const CublasLtPlan &) = delete;

  /// Up to `count` algorithms, the best first as the library's heuristic has it. Only those that
  /// add up in an order that does not depend on how blocks run, within the shape's workspace. The
  /// epilogue's addresses tell their alignment.
  Expected<std::vector<cublaslt::HeuristicResult>> candidates(const GemmAddresses &addresses,
                                                              int count);
  void choose(const cublaslt::Algorithm &algorithm) { algorithm_ = algorithm; }

  /// Queues the product, with the chosen algorithm. Allocates nothing.
  Status run(const GemmAddresses &addresses, cublaslt::Stream stream);

  const CublasLtShape &shape() const { return shape_; }

private:
  CublasLtPlan(const CublasLtLibrary &library, cublaslt::Handle handle, const CublasLtShape &shape);
  Status makeDescriptors();
  Status makeLayout(cublaslt::MatrixLayout &layout, const CublasLtMatrix &matrix);
  Status setPointers(const GemmAddresses &addresses);
  template <typename T> Status set(cublaslt::MatmulAttribute attribute, T value);
  Status check(cublaslt::Result status, const char *call) const;

  const CublasLtLibrary &library_;
  cublaslt::Handle handle_;
  CublasLtShape shape_;
  cublaslt::MatmulDescriptor descriptor_ = nullptr;
  cublaslt::MatrixLayout first_ = nullptr, second_ = nullptr, result_ = nullptr;
  cublaslt::Algorithm algorithm_{};
};

} // namespace gradc::rt

// The matrix products of a step through cuBLASLt.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "runtime/cuda/CublasLtPlan.h"
#include "runtime/cuda/CublasLtTuning.h"

namespace gradc::rt {

/// What is prepared for a shape (descriptors, the algorithm) is made when a product first runs and
/// kept: a step after the first prepares and allocates nothing.
class CublasLtProducts final : public cuda::Products {
public:
  /// Loads the library; the calling thread's CUDA context must be current, now and at every call.
  /// What is prepared is found by a product's address, and once for all products of a shape.
  static Expected<std::unique_ptr<CublasLtProducts>> create();
  ~CublasLtProducts() override;
  CublasLtProducts(const CublasLtProducts &) = delete;
  CublasLtProducts &operator=(const CublasLtProducts &) = delete;

  Status run(const GradcGemm &gemm, const cuda::ProductAddresses &addresses,
             cuda::Stream stream) override;
  void tune(cuda::TuningDevice device, const std::string &gpu) override;
  std::vector<std::string> choices() const override;

private:
  struct Prepared {
    CublasLtPlan *plan;
    int64_t outerBatch;
  };
  explicit CublasLtProducts(std::unique_ptr<CublasLtLibrary> library)
      : library_(std::move(library)) {}
  Expected<Prepared> prepare(const GradcGemm &gemm, const cuda::ProductAddresses &addresses,
                             cuda::Stream stream);
  Status choose(CublasLtPlan &plan, const GradcGemm &gemm, const cuda::ProductAddresses &addresses,
                cuda::Stream stream);

  std::unique_ptr<CublasLtLibrary> library_;
  std::unique_ptr<CublasLtTuner> tuner_;
  cublaslt::Handle handle_ = nullptr;
  std::unordered_map<std::string, std::unique_ptr<CublasLtPlan>> plans_; ///< by their shape's text
  std::unordered_map<const GradcGemm *, Prepared> prepared_;
};

} // namespace gradc::rt

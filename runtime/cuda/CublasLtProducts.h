// The matrix products of a step through cuBLASLt.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "runtime/cuda/CublasLtPlan.h"
#include "runtime/cuda/CublasLtTuning.h"

namespace gradc::rt {

/// Executes products on a stream. What it prepares for a shape (descriptors, the algorithm) is made
/// when a product first runs and kept: a step after the first prepares and allocates nothing, and
/// may be captured into a graph. Not for use by several threads at once.
class CublasLtProducts {
public:
  /// Loads the library; the calling thread's CUDA context must be current, now and at every call.
  static Expected<std::unique_ptr<CublasLtProducts>> create();
  ~CublasLtProducts();
  CublasLtProducts(const CublasLtProducts &) = delete;
  CublasLtProducts &operator=(const CublasLtProducts &) = delete;

  /// Queues the product. `gemm` stays where it is as long as this lives: what is prepared is found
  /// by its address, and once for all products of a shape.
  Status run(const GradcGemm &gemm, const GemmAddresses &addresses, cublaslt::Stream stream);

  /// From now on algorithms are chosen by measuring, instead of by the library's heuristic: in the
  /// first run of each shape, which must then be outside of any capture. `gpu` is the device's
  /// name.
  void tune(TuningDevice device, const std::string &gpu);
  /// How each shape's algorithm was chosen by measuring, a line each.
  std::vector<std::string> choices() const;

private:
  struct Prepared {
    CublasLtPlan *plan;
    int64_t outerBatch;
  };
  explicit CublasLtProducts(std::unique_ptr<CublasLtLibrary> library)
      : library_(std::move(library)) {}
  Expected<Prepared> prepare(const GradcGemm &gemm, const GemmAddresses &addresses,
                             cublaslt::Stream stream);
  Status choose(CublasLtPlan &plan, const GradcGemm &gemm, const GemmAddresses &addresses,
                cublaslt::Stream stream);

  std::unique_ptr<CublasLtLibrary> library_;
  std::unique_ptr<CublasLtTuner> tuner_;
  cublaslt::Handle handle_ = nullptr;
  std::unordered_map<std::string, std::unique_ptr<CublasLtPlan>> plans_; ///< by their shape's text
  std::unordered_map<const GradcGemm *, Prepared> prepared_;
};

} // namespace gradc::rt

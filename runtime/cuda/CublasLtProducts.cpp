// See CublasLtProducts.h.
#include "runtime/cuda/CublasLtProducts.h"

namespace gradc::rt {
namespace {

/// The operands of the next product of the outer batch.
void advance(GemmAddresses &addresses, const GradcGemm &gemm) {
  auto bytes = [](const GradcMatrix &matrix) {
    return matrix.batchStride[0] * cublasLtBytesOf(matrix.type);
  };
  addresses.a += bytes(gemm.a);
  addresses.b += bytes(gemm.b);
  addresses.c += bytes(gemm.c);
}

} // namespace

Expected<std::unique_ptr<CublasLtProducts>> CublasLtProducts::create() {
  // A library that is newer than the driver loads, and refuses to begin; an older one may do.
  std::vector<std::string> names = CublasLtLibrary::names();
  Status refused;
  for (; !names.empty(); names.erase(names.begin())) {
    auto library = CublasLtLibrary::open(names);
    if (!library.ok() && refused.ok())
      return library.status();
    if (!library.ok())
      break;
    std::unique_ptr<CublasLtProducts> products(new CublasLtProducts(std::move(*library)));
    const CublasLtLibrary &opened = *products->library_;
    auto code = opened.functions().Create(&products->handle_);
    refused = opened.check(code, "cublasLtCreate");
    if (refused.ok())
      return products;
    if (code != cublaslt::statusNotInitialized)
      return refused;
  }
  return Status::machine(refused.message() +
                         "; cuBLASLt 13 needs a driver of CUDA 13 (580 or later), cuBLASLt 12 one "
                         "of CUDA 12 (525): set GRADC_CUBLASLT_PATH to one that fits");
}

CublasLtProducts::~CublasLtProducts() {
  plans_.clear();
  if (handle_)
    library_->functions().Destroy(handle_);
}

Expected<CublasLtProducts::Prepared> CublasLtProducts::prepare(const GradcGemm &gemm,
                                                               const GemmAddresses &addresses,
                                                               cublaslt::Stream stream) {
  if (auto found = prepared_.find(&gemm); found != prepared_.end())
    return found->second;
  GRADC_ASSIGN_OR_RETURN(CublasLtCalls calls, cublasLtCalls(gemm, addresses));
  std::unique_ptr<CublasLtPlan> &plan = plans_[calls.shape.text()];
  if (!plan) {
    GRADC_ASSIGN_OR_RETURN(auto made, CublasLtPlan::make(*library_, handle_, calls.shape));
    GRADC_RETURN_IF_ERROR(choose(*made, gemm, addresses, stream));
    plan = std::move(made);
  }
  return prepared_[&gemm] = {plan.get(), calls.outerBatch};
}

Status CublasLtProducts::choose(CublasLtPlan &plan, const GradcGemm &gemm,
                                const GemmAddresses &addresses, cublaslt::Stream stream) {
  if (tuner_)
    return tuner_->choose(plan, gemm, addresses, stream);
  GRADC_ASSIGN_OR_RETURN(auto candidates, plan.candidates(addresses, 1));
  plan.choose(candidates.front().algorithm);
  return {};
}

void CublasLtProducts::tune(TuningDevice device, const std::string &gpu) {
  MeasurementCache cache(MeasurementCache::defaultFolder(), "algorithms.json",
                         "cuBLASLt " + library_->version() + ", " + gpu);
  tuner_ = std::make_unique<CublasLtTuner>(std::move(device), std::move(cache));
}

std::vector<std::string> CublasLtProducts::choices() const {
  if (!tuner_)
    return {};
  std::vector<std::string> lines = tuner_->lines();
  if (!tuner_->warning().empty())
    lines.push_back(tuner_->warning());
  return lines;
}

Status CublasLtProducts::run(const GradcGemm &gemm, const GemmAddresses &addresses,
                             cublaslt::Stream stream) {
  if (gemm.batch[0] <= 0 || gemm.batch[1] <= 0)
    return {};
  GRADC_ASSIGN_OR_RETURN(Prepared prepared, prepare(gemm, addresses, stream));
  GemmAddresses at = addresses;
  for (int64_t i = 0; i < prepared.outerBatch; ++i, advance(at, gemm))
    GRADC_RETURN_IF_ERROR(prepared.plan->run(at, stream));
  return {};
}

} // namespace gradc::rt

// See CublasLtTuning.h.
#include "runtime/cuda/CublasLtTuning.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace gradc::rt {
namespace {

using namespace cublaslt;

constexpr int mostCandidates = 8;
constexpr std::size_t runs = 5; ///< of each, after one that is not counted

/// An algorithm as a cache has it: what the library may be given again, as hexadecimal digits.
std::string digits(const Algorithm &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data)
    text += fmt::format("{:016x}", word);
  return text;
}

} // namespace

Status CublasLtTuner::choose(CublasLtPlan &plan, const GradcGemm &gemm,
                             const GemmAddresses &addresses, Stream stream) {
  GRADC_ASSIGN_OR_RETURN(auto candidates, plan.candidates(addresses, mostCandidates));
  std::string shape = plan.shape().text();
  std::optional<nlohmann::json> kept = cache_.find(shape);
  if (kept && kept->is_string())
    for (const HeuristicResult &candidate : candidates)
      if (*kept == digits(candidate.algorithm)) {
        plan.choose(candidate.algorithm);
        lines_.push_back(fmt::format("{}: as measured before ({})", shape, cache_.path()));
        return {};
      }
  auto work = [&] { return measure(plan, candidates, addresses, stream); };
  if (!plan.shape().accumulates)
    return work();
  return device_.preserving(addresses.c, gemm.c.buffer.bytes, work);
}

Status CublasLtTuner::measure(CublasLtPlan &plan, const std::vector<HeuristicResult> &candidates,
                              const GemmAddresses &addresses, Stream stream) {
  std::vector<double> seconds;
  for (const HeuristicResult &candidate : candidates) {
    plan.choose(candidate.algorithm);
    GRADC_ASSIGN_OR_RETURN(double each, medianSeconds(plan, addresses, stream));
    seconds.push_back(each);
  }
  auto best = std::min_element(seconds.begin(), seconds.end()) - seconds.begin();
  const Algorithm &chosen = candidates[std::size_t(best)].algorithm;
  plan.choose(chosen);
  std::string shape = plan.shape().text();
  lines_.push_back(fmt::format(
      "{}: the library's choice {} of {}, {:.1f} us (its first: {:.1f} us)", shape, best + 1,
      candidates.size(), seconds[std::size_t(best)] * 1e6, seconds.front() * 1e6));
  cache_.add(shape, digits(chosen));
  warning_ = cache_.save().message();
  return {};
}

Expected<double> CublasLtTuner::medianSeconds(CublasLtPlan &plan, const GemmAddresses &addresses,
                                              Stream stream) {
  auto work = [&] { return plan.run(addresses, stream); };
  GRADC_RETURN_IF_ERROR(work());
  std::vector<double> seconds;
  for (std::size_t i = 0; i < runs; ++i) {
    GRADC_ASSIGN_OR_RETURN(double each, device_.seconds(work));
    seconds.push_back(each);
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[runs / 2];
}

} // namespace gradc::rt

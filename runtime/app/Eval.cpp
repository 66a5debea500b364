// `eval`: loss and perplexity of given weights on given data.
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/Say.h"
#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/app/Weights.h"
#include "runtime/metrics/Progress.h"

namespace gradc::rt {

Status evaluate(const GradcExecutable &executable, const Metadata &metadata,
                const EvalOptions &options) {
  GRADC_ASSIGN_OR_RETURN(Evaluation evaluation,
                         Evaluation::open(metadata, options.data, options.batches));
  GRADC_ASSIGN_OR_RETURN(auto session, Session::open(executable, metadata, options.threads));
  GRADC_RETURN_IF_ERROR(loadWeights(*session, options.weights));
  // Standard output is the result's alone.
  EvalProgress progress({.out = stderr, .totalSteps = evaluation.batches()});
  auto show = [&](uint64_t batches, const EvalResult &soFar) {
    progress.update(batches, soFar.loss, soFar.tokens);
  };
  GRADC_ASSIGN_OR_RETURN(EvalResult result, evaluation.run(*session, show));
  progress.finish();
  double perplexity = std::exp(result.loss);
  if (options.json) {
    nlohmann::json object{
        {"loss", result.loss}, {"perplexity", perplexity}, {"tokens", result.tokens}};
    say(stdout, "{}\n", object.dump());
  } else {
    say(stdout, "loss {:.6f}  perplexity {:.4f}  tokens {}\n", result.loss, perplexity,
        result.tokens);
  }
  return Status();
}

} // namespace gradc::rt

// Evaluation through the program `eval_loss`.
#include "runtime/app/Evaluation.h"

#include <vector>

#include <fmt/format.h>

#include "runtime/Say.h"

namespace gradc::rt {

Status fillPositions(Session &session, const std::string &program) {
  std::string name = program + ".positions";
  const Slot *slot = session.metadata().find(name);
  if (!slot || slot->shape.empty() || slot->shape.back() == 0)
    return Status();
  std::vector<int32_t> positions(std::size_t(slot->elements()));
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = int32_t(i % std::size_t(slot->shape.back()));
  return session.write(name, positions.data(), slot->bytes);
}

Expected<Evaluation> Evaluation::open(const Metadata &metadata, const std::string &path,
                                      int64_t limit) {
  GRADC_ASSIGN_OR_RETURN(auto source, openTokens(path, 1, DataSplit::validation));
  if (std::string choice = source->choice(); !choice.empty())
    say(stderr, "{}\n", choice); // standard output may be JSON
  BatchOptions options;
  options.batch = uint64_t(metadata.microBatch);
  options.seq = uint64_t(metadata.seq);
  options.vocabSize = metadata.vocab;
  options.separator = metadata.documentSeparator;
  GRADC_ASSIGN_OR_RETURN(auto batches, ValidationBatches::create(std::move(source), options));
  return Evaluation(std::move(batches), limit);
}

uint64_t Evaluation::batches() const {
  return limit_ > 0 ? std::min(batches_.count(), uint64_t(limit_)) : batches_.count();
}

Expected<EvalResult> Evaluation::run(Session &session, const EvalObserver &observe) const {
  const Metadata &metadata = session.metadata();
  std::size_t count = std::size_t(metadata.microBatch * metadata.seq);
  int64_t bytes = int64_t(count * sizeof(int32_t));
  std::vector<int32_t> tokens(count), targets(count);
  GRADC_RETURN_IF_ERROR(fillPositions(session, "eval_loss"));
  double sum = 0, valid = 0;
  for (uint64_t batch = 0, last = batches(); batch < last; ++batch) {
    GRADC_RETURN_IF_ERROR(batches_.batchAt(batch, tokens.data(), targets.data()).status());
    GRADC_RETURN_IF_ERROR(session.write("eval_loss.tokens", tokens.data(), bytes));
    GRADC_RETURN_IF_ERROR(session.write("eval_loss.targets", targets.data(), bytes));
    GRADC_RETURN_IF_ERROR(session.run("eval_loss"));
    GRADC_ASSIGN_OR_RETURN(double loss, session.readScalar("eval_loss.loss"));
    GRADC_ASSIGN_OR_RETURN(double labels, session.readScalar("eval_loss.valid"));
    sum += loss;
    valid += labels;
    if (observe)
      observe(batch + 1, {valid > 0 ? sum / valid : 0, int64_t(valid)});
  }
  if (valid == 0)
    return Status::user(
        fmt::format("validation data: every token to predict from is {}, which ends "
                    "a document; give other data, or compile with another "
                    "--document-separator",
                    metadata.documentSeparator));
  return EvalResult{sum / valid, int64_t(valid)};
}

} // namespace gradc::rt

// See StepInputs.h.
#include "runtime/app/StepInputs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace gradc::rt {

StepInputs::StepInputs(const Metadata &metadata)
    : metadata_(metadata), tokens_(std::size_t(metadata.tokensPerStep())),
      targets_(tokens_.size()) {}

Status StepInputs::next(BatchLoader &loader, int64_t step) {
  std::size_t count = std::size_t(metadata_.microBatch * metadata_.seq);
  for (std::size_t at = 0; at < tokens_.size(); at += count)
    GRADC_RETURN_IF_ERROR(loader.next(tokens_.data() + at, targets_.data() + at));
  if (std::all_of(targets_.begin(), targets_.end(), [](int32_t target) { return target < 0; }))
    return Status::user(fmt::format("{}: every token of step {} is {}, which ends a document, so "
                                    "there is nothing to predict; give other data, or compile with "
                                    "another --document-separator",
                                    loader.source().path(), step, metadata_.documentSeparator));
  return Status();
}

Status StepInputs::writeBatch(Session &session, const std::string &program,
                              const RunState &state) const {
  int64_t bytes = int64_t(tokens_.size() * sizeof(int32_t));
  GRADC_RETURN_IF_ERROR(session.write(program + ".tokens", tokens_.data(), bytes));
  GRADC_RETURN_IF_ERROR(session.write(program + ".targets", targets_.data(), bytes));
  return writeRandomKeys(session, program, state);
}

/// What dropout's masks are keyed by: they are the same after a resume, and for any split of the
/// step into microbatches.
Status StepInputs::writeRandomKeys(Session &session, const std::string &program,
                                   const RunState &state) const {
  if (!metadata_.find(program + ".seed"))
    return Status();
  int32_t seed = int32_t(uint32_t(state.seed ^ (state.seed >> 32)));
  int32_t step = int32_t(state.step + 1);
  std::vector<int32_t> firstRows;
  for (int64_t i = 0; i < metadata_.gradAccum; ++i)
    firstRows.push_back(int32_t(i * metadata_.microBatch * metadata_.seq));
  GRADC_RETURN_IF_ERROR(session.write(program + ".seed", &seed, sizeof(seed)));
  GRADC_RETURN_IF_ERROR(session.write(program + ".step", &step, sizeof(step)));
  return session.write(program + ".first_row", firstRows.data(),
                       int64_t(firstRows.size() * sizeof(int32_t)));
}

Status StepInputs::writeScalars(Session &session, const TrainOptions &options,
                                const RunState &state, double rate) {
  double t = double(state.updates() + 1);
  const std::pair<const char *, double> values[] = {
      {"learning_rate", rate},
      {"beta1", options.beta1},
      {"beta2", options.beta2},
      {"eps", options.eps},
      {"weight_decay", options.weightDecay},
      {"clip_grad", options.clipGrad},
      {"bias_correction1", 1 - std::pow(options.beta1, t)},
      {"bias_correction2", 1 - std::pow(options.beta2, t)}};
  for (auto &[name, value] : values)
    GRADC_RETURN_IF_ERROR(session.writeScalar(fmt::format("train_step.{}", name), value));
  for (const char *program : {"train_step", "gradients"})
    GRADC_RETURN_IF_ERROR(
        session.writeScalar(fmt::format("{}.loss_scale", program), state.lossScale.scale));
  return Status();
}

} // namespace gradc::rt

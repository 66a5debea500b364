// `train`: the loop over steps with validation, checkpoints and reports between them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/app/FiniteCheck.h"
#include "runtime/app/OutputFiles.h"
#include "runtime/app/PeakProbe.h"
#include "runtime/app/Reporter.h"
#include "runtime/app/RunState.h"
#include "runtime/app/StopSignal.h"
#include "runtime/app/Weights.h"
#include "runtime/checkpoint/FolderLock.h"

namespace gradc::rt {
namespace {

class Trainer {
public:
  Trainer(const GradcExecutable &executable, const Metadata &metadata, const TrainOptions &options)
      : executable_(executable), metadata_(metadata), options_(options) {}
  Status run();

private:
  Status openInputs();
  Expected<std::optional<Checkpoint>> openCheckpoint();
  Status setWeights(const std::optional<Checkpoint> &checkpoint);
  void announce() const;
  Status loop();
  Status step(StepResult &result);
  Status fillBatch();
  Status writeRandomKeys(const std::string &program);
  Status writeBatch(const std::string &program);
  Status writeHyperParameters(double rate);
  Status dumpGradients();
  Status save();
  Status finish();

  bool scalesLoss() const { return metadata_.find("train_step.loss_scale"); }
  bool isDone() const { return state_.step >= options_.steps; }

  const GradcExecutable &executable_;
  const Metadata &metadata_;
  const TrainOptions &options_;
  RunState state_;
  int64_t savedStep_ = 0;
  int64_t firstStep_ = 0; ///< steps done before this run
  FiniteGuard finite_;
  std::shared_ptr<const TokenSource> source_;
  std::optional<Evaluation> validation_;
  std::optional<FolderLock> lock_; ///< of the checkpoint folder
  std::unique_ptr<Session> session_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<Reporter> reporter_;
  std::vector<int32_t> tokens_, targets_; ///< of one step, microbatch after microbatch
};

Status Trainer::run() {
  catchStopSignals();
  GRADC_RETURN_IF_ERROR(openInputs());
  GRADC_ASSIGN_OR_RETURN(auto checkpoint, openCheckpoint());
  std::optional<PeakRates> peak;
  if (!options_.metrics.empty() || !options_.tensorboard.empty()) {
    GRADC_ASSIGN_OR_RETURN(peak, probePeak(options_.threads));
  }
  announce();
  GRADC_ASSIGN_OR_RETURN(session_, Session::open(executable_, metadata_, options_.threads));
  GRADC_RETURN_IF_ERROR(setWeights(checkpoint));
  checkpoint.reset();
  for (const char *program : {"train_step", "gradients"})
    GRADC_RETURN_IF_ERROR(fillPositions(*session_, program));

  BatchOptions batches{uint64_t(metadata_.microBatch),
                       uint64_t(metadata_.seq),
                       state_.dataOrder,
                       state_.seed,
                       metadata_.vocab,
                       metadata_.documentSeparator};
  GRADC_ASSIGN_OR_RETURN(loader_, BatchLoader::create(source_, batches, state_.dataCursor));
  GRADC_ASSIGN_OR_RETURN(reporter_, Reporter::create(options_, metadata_, peak, state_.step));
  reporter_->attachTrace(*session_);
  firstStep_ = savedStep_ = state_.step;
  Status status = loop();
  if (status.ok())
    status = finish();
  Status ended = reporter_->finish(*session_);
  return status.ok() ? ended : status;
}

/// Everything that can be wrong with the user's input comes before anything that takes time.
Status Trainer::openInputs() {
  for (const std::string *path : {&options_.saveWeights, &options_.dumpGrads})
    GRADC_RETURN_IF_ERROR(checkWritable(*path));
  GRADC_RETURN_IF_ERROR(
      checkDistinct({options_.saveWeights, options_.dumpGrads, options_.metrics, options_.trace},
                    {options_.data, options_.valData}));
  GRADC_ASSIGN_OR_RETURN(source_, openTokens(options_.data, uint64_t(metadata_.seq)));
  if (!options_.valData.empty()) {
    GRADC_ASSIGN_OR_RETURN(validation_,
                           Evaluation::open(metadata_, options_.valData, options_.valBatches));
  }
  std::size_t count = std::size_t(metadata_.tokensPerStep());
  tokens_.resize(count);
  targets_.resize(count);
  return Status();
}

Expected<std::optional<Checkpoint>> Trainer::openCheckpoint() {
  state_.seed = options_.seed;
  state_.dataOrder = options_.dataOrder;
  state_.lossScale.scale = options_.lossScale.initial;
  std::optional<Checkpoint> checkpoint;
  if (options_.checkpointDir.empty())
    return checkpoint;
  GRADC_ASSIGN_OR_RETURN(lock_, FolderLock::take(options_.checkpointDir));
  if (!options_.resume) {
    GRADC_ASSIGN_OR_RETURN(auto steps, listCheckpoints(options_.checkpointDir));
    if (!steps.empty())
      return Status::user(fmt::format("{}: holds checkpoints of an earlier run, up to step {}; "
                                      "continue it with --resume, or choose another folder",
                                      options_.checkpointDir, steps.back()));
    return checkpoint;
  }
  GRADC_ASSIGN_OR_RETURN(checkpoint, openNewest(options_.checkpointDir, metadata_));
  if (!checkpoint) {
    fmt::print("no checkpoint in {}: starting afresh\n", options_.checkpointDir);
    return checkpoint;
  }
  GRADC_ASSIGN_OR_RETURN(state_, readRunState(*checkpoint, metadata_, options_));
  fmt::print("resuming after step {} from {}\n", state_.step, checkpoint->path);
  return checkpoint;
}

Status Trainer::setWeights(const std::optional<Checkpoint> &checkpoint) {
  if (checkpoint)
    return restoreTensors(*session_, *checkpoint, true);
  if (!options_.initWeights.empty())
    return loadWeights(*session_, options_.initWeights);
  InitKind kind;
  if (options_.init) {
    kind = *options_.init;
  } else {
    GRADC_ASSIGN_OR_RETURN(kind, parseInitKind(metadata_.init));
  }
  return session_->initialiseParameters(kind, state_.seed);
}

void Trainer::announce() const {
  fmt::print("parameters {}\n", metadata_.parameters);
  fmt::print("tokens a step {} ({} microbatches of {} x {}), {} training tokens\n",
             metadata_.tokensPerStep(), metadata_.gradAccum, metadata_.microBatch, metadata_.seq,
             source_->size());
  if (std::string choice = source_->choice(); !choice.empty())
    fmt::print("{}\n", choice);
  fmt::print("planned peak memory {}\n", formatBytes(metadata_.memory.peak));
  std::fflush(stdout);
}

Status Trainer::loop() {
  while (!isDone() && !stopRequested()) {
    StepResult result;
    GRADC_RETURN_IF_ERROR(step(result));
    bool validate = validation_ &&
                    (isDone() || (options_.valEvery > 0 && state_.step % options_.valEvery == 0));
    if (validate) {
      GRADC_ASSIGN_OR_RETURN(EvalResult evaluated, validation_->run(*session_));
      result.valLoss = evaluated.loss;
    }
    GRADC_RETURN_IF_ERROR(reporter_->report(*session_, result));
    // A skipped step is no fault while the loss scale can still fall.
    if (!result.skipped || state_.lossScale.scale <= LossScale::least)
      GRADC_RETURN_IF_ERROR(finite_.note(result.step, result.loss, result.gradNorm));
    if (options_.checkpointEvery > 0 && state_.step % options_.checkpointEvery == 0)
      GRADC_RETURN_IF_ERROR(save());
  }
  return Status();
}

Status Trainer::step(StepResult &result) {
  result.step = state_.step + 1;
  result.learningRate = options_.schedule.rate(state_.updates() + 1);
  auto begin = std::chrono::steady_clock::now();
  GRADC_RETURN_IF_ERROR(fillBatch());
  GRADC_RETURN_IF_ERROR(writeBatch("train_step"));
  GRADC_RETURN_IF_ERROR(writeHyperParameters(result.learningRate));
  if (options_.checkNans) {
    GRADC_RETURN_IF_ERROR(writeBatch("gradients"));
    GRADC_RETURN_IF_ERROR(findNonFinite(*session_, result.step));
  }
  if (result.step == options_.steps && !options_.dumpGrads.empty())
    GRADC_RETURN_IF_ERROR(dumpGradients());
  GRADC_RETURN_IF_ERROR(session_->run("train_step"));
  GRADC_ASSIGN_OR_RETURN(result.loss, session_->readScalar("train_step.loss"));
  GRADC_ASSIGN_OR_RETURN(result.gradNorm, session_->readScalar("train_step.grad_norm"));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state_.step = result.step;
  if (scalesLoss()) {
    bool finite = std::isfinite(result.gradNorm);
    result.skipped = !finite;
    state_.skipped += !finite;
    state_.lossScale.note(finite, options_.lossScale);
  }
  state_.dataCursor = loader_->cursor();
  return Status();
}

Status Trainer::fillBatch() {
  std::size_t count = std::size_t(metadata_.microBatch * metadata_.seq);
  for (int64_t i = 0; i < metadata_.gradAccum; ++i)
    GRADC_RETURN_IF_ERROR(loader_->next(tokens_.data() + std::size_t(i) * count,
                                        targets_.data() + std::size_t(i) * count));
  if (std::all_of(targets_.begin(), targets_.end(), [](int32_t target) { return target < 0; }))
    return Status::user(fmt::format("{}: every token of step {} is {}, which ends a document, so "
                                    "there is nothing to predict; give other data, or compile with "
                                    "another --document-separator",
                                    source_->path(), state_.step + 1, metadata_.documentSeparator));
  return Status();
}

Status Trainer::writeBatch(const std::string &program) {
  int64_t bytes = int64_t(tokens_.size() * sizeof(int32_t));
  GRADC_RETURN_IF_ERROR(session_->write(program + ".tokens", tokens_.data(), bytes));
  GRADC_RETURN_IF_ERROR(session_->write(program + ".targets", targets_.data(), bytes));
  return writeRandomKeys(program);
}

/// What dropout's masks are keyed by: they are the same after a resume, and for any split of the
/// step into microbatches.
Status Trainer::writeRandomKeys(const std::string &program) {
  if (!metadata_.find(program + ".seed"))
    return Status();
  int32_t seed = int32_t(uint32_t(state_.seed ^ (state_.seed >> 32)));
  int32_t step = int32_t(state_.step + 1);
  std::vector<int32_t> firstRows;
  for (int64_t i = 0; i < metadata_.gradAccum; ++i)
    firstRows.push_back(int32_t(i * metadata_.microBatch * metadata_.seq));
  GRADC_RETURN_IF_ERROR(session_->write(program + ".seed", &seed, sizeof(seed)));
  GRADC_RETURN_IF_ERROR(session_->write(program + ".step", &step, sizeof(step)));
  return session_->write(program + ".first_row", firstRows.data(),
                         int64_t(firstRows.size() * sizeof(int32_t)));
}

Status Trainer::writeHyperParameters(double rate) {
  double t = double(state_.updates() + 1);
  const std::pair<const char *, double> values[] = {
      {"learning_rate", rate},
      {"beta1", options_.beta1},
      {"beta2", options_.beta2},
      {"eps", options_.eps},
      {"weight_decay", options_.weightDecay},
      {"clip_grad", options_.clipGrad},
      {"bias_correction1", 1 - std::pow(options_.beta1, t)},
      {"bias_correction2", 1 - std::pow(options_.beta2, t)}};
  for (auto &[name, value] : values)
    GRADC_RETURN_IF_ERROR(session_->writeScalar(fmt::format("train_step.{}", name), value));
  for (const char *program : {"train_step", "gradients"})
    GRADC_RETURN_IF_ERROR(
        session_->writeScalar(fmt::format("{}.loss_scale", program), state_.lossScale.scale));
  return Status();
}

Status Trainer::dumpGradients() {
  GRADC_RETURN_IF_ERROR(writeBatch("gradients"));
  GRADC_RETURN_IF_ERROR(session_->run("gradients"));
  return writeSafetensors(options_.dumpGrads, session_->gradientViews()).status();
}

Status Trainer::save() {
  if (!finite_.lastWasFinite()) {
    reporter_->note(fmt::format("step {} was not finite: not saved", state_.step));
    return Status();
  }
  GRADC_RETURN_IF_ERROR(saveRunState(*session_, state_, options_));
  savedStep_ = state_.step;
  reporter_->note(fmt::format("saved step {} in {}", state_.step, options_.checkpointDir));
  return Status();
}

Status Trainer::finish() {
  if (!options_.checkpointDir.empty() && savedStep_ < state_.step)
    GRADC_RETURN_IF_ERROR(save());
  if (!isDone())
    reporter_->note(fmt::format("stopped by a signal after step {}{}", state_.step,
                                options_.dumpGrads.empty() ? "" : "; no gradients were dumped"));
  if (firstStep_ >= options_.steps)
    reporter_->note(fmt::format("nothing to do: {} steps are done already", firstStep_));
  if (!finite_.lastWasFinite())
    return Status::user(fmt::format("step {}: loss or gradient norm is not finite; nothing was "
                                    "exported; lower --lr or raise --warmup",
                                    state_.step));
  if (options_.saveWeights.empty())
    return Status();
  GRADC_RETURN_IF_ERROR(
      writeSafetensors(options_.saveWeights, session_->parameterViews(false)).status());
  reporter_->note(fmt::format("weights written to {}", options_.saveWeights));
  return Status();
}

} // namespace

Status train(const GradcExecutable &executable, const Metadata &metadata,
             const TrainOptions &options) {
  return Trainer(executable, metadata, options).run();
}

} // namespace gradc::rt

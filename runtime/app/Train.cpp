// `train`: the loop over steps with validation, checkpoints and reports between them.
#include <chrono>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "runtime/Say.h"
#include "runtime/app/Commands.h"
#include "runtime/app/Evaluation.h"
#include "runtime/app/FiniteCheck.h"
#include "runtime/app/OutputFiles.h"
#include "runtime/app/Reporter.h"
#include "runtime/app/RunState.h"
#include "runtime/app/StepInputs.h"
#include "runtime/app/StopSignal.h"
#include "runtime/app/Weights.h"
#include "runtime/checkpoint/FolderLock.h"
#include "runtime/cpu/Arena.h"

namespace gradc::rt {
namespace {

class Trainer {
public:
  Trainer(const GradcExecutable &executable, const Metadata &metadata, const TrainOptions &options)
      : executable_(executable), metadata_(metadata), options_(options), inputs_(metadata) {}
  Status run();

private:
  Status openInputs();
  Expected<std::optional<Checkpoint>> openCheckpoint();
  Status setWeights(const std::optional<Checkpoint> &checkpoint);
  void announce() const;
  Status loop();
  Status step(StepResult &result);
  Status prepareBatch(int64_t step);
  Status compute(StepResult &result);
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
  StepInputs inputs_;
  int64_t preparedStep_ = 0; ///< whose batch is in `inputs_` and on the device, or failed:
  Status prepared_;
};

Status Trainer::run() {
  catchStopSignals();
  GRADC_RETURN_IF_ERROR(openInputs());
  if (executable_.device->find) // before anything is made or said
    GRADC_RETURN_IF_ERROR(executable_.device->find(executable_));
  GRADC_ASSIGN_OR_RETURN(auto checkpoint, openCheckpoint());
  std::optional<DevicePeak> peak;
  if (!options_.metrics.empty() || !options_.tensorboard.empty()) {
    GRADC_ASSIGN_OR_RETURN(peak, executable_.device->peak(options_.threads));
  }
  announce();
  GRADC_ASSIGN_OR_RETURN(session_, Session::open(executable_, metadata_, options_.threads));
  if (options_.autotune)
    GRADC_RETURN_IF_ERROR(session_->device().tune());
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
  if (!scalesLoss() && !options_.lossScaleFlag.empty())
    return Status::user(fmt::format("{}: this executable computes in {} and scales no loss; leave "
                                    "the flag out, or compile with --precision fp16",
                                    options_.lossScaleFlag, metadata_.precision));
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
    say(stdout, "no checkpoint in {}: starting afresh\n", options_.checkpointDir);
    return checkpoint;
  }
  GRADC_ASSIGN_OR_RETURN(state_, readRunState(*checkpoint, metadata_, options_));
  if (std::string before = savedPrecision(*checkpoint);
      !before.empty() && before != metadata_.precision)
    say(stderr, "warning: {} was trained in {}; this executable goes on in {}\n", checkpoint->path,
        before, metadata_.precision);
  say(stdout, "resuming after step {} from {}\n", state_.step, checkpoint->path);
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
  say(stdout, "parameters {}\n", metadata_.parameters);
  say(stdout, "tokens a step {} ({} microbatches of {} x {}), {} training tokens\n",
      metadata_.tokensPerStep(), metadata_.gradAccum, metadata_.microBatch, metadata_.seq,
      source_->size());
  if (std::string choice = source_->choice(); !choice.empty())
    say(stdout, "{}\n", choice);
  say(stdout, "planned peak memory {}\n", formatBytes(metadata_.memory.peak));
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
  GRADC_RETURN_IF_ERROR(prepareBatch(result.step));
  uint64_t cursor = loader_->cursor();
  GRADC_RETURN_IF_ERROR(inputs_.writeScalars(*session_, options_, state_, result.learningRate));
  if (options_.checkNans) {
    GRADC_RETURN_IF_ERROR(inputs_.writeBatch(*session_, "gradients", state_));
    GRADC_RETURN_IF_ERROR(findNonFinite(*session_, result.step));
  }
  if (result.step == options_.steps && !options_.dumpGrads.empty())
    GRADC_RETURN_IF_ERROR(dumpGradients());
  GRADC_RETURN_IF_ERROR(compute(result).during(fmt::format("step {}", result.step)));
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state_.step = result.step;
  if (scalesLoss()) {
    bool finite = std::isfinite(result.gradNorm);
    result.skipped = !finite;
    state_.skipped += !finite;
    state_.lossScale.note(finite, options_.lossScale);
  }
  state_.dataCursor = cursor;
  return Status();
}

/// Reads the batch of a step and writes it to the device, once; what fails is told when that step
/// begins.
Status Trainer::prepareBatch(int64_t step) {
  if (preparedStep_ == step)
    return prepared_;
  preparedStep_ = step;
  prepared_ = inputs_.next(*loader_, step);
  RunState before = state_;
  before.step = step - 1;
  if (prepared_.ok())
    prepared_ = inputs_.writeBatch(*session_, "train_step", before);
  return prepared_;
}

/// While the device computes, the next step's batch is on its way.
Status Trainer::compute(StepResult &result) {
  GRADC_RETURN_IF_ERROR(session_->run("train_step"));
  if (result.step < options_.steps && !stopRequested())
    (void)prepareBatch(result.step + 1);
  GRADC_ASSIGN_OR_RETURN(result.loss, session_->readScalar("train_step.loss"));
  GRADC_ASSIGN_OR_RETURN(result.gradNorm, session_->readScalar("train_step.grad_norm"));
  return Status();
}

Status Trainer::dumpGradients() {
  GRADC_RETURN_IF_ERROR(inputs_.writeBatch(*session_, "gradients", state_));
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

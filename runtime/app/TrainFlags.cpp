// See TrainFlags.h.
#include "runtime/app/TrainFlags.h"

#include <limits>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/app/WholeNumber.h"

namespace gradc::rt {
namespace {

LrDecay decayNamed(const std::string &name) {
  return std::map<std::string, LrDecay>{{"cosine", LrDecay::cosine},
                                        {"linear", LrDecay::linear},
                                        {"wsd", LrDecay::wsd},
                                        {"constant", LrDecay::constant}}
      .at(name);
}

/// CLI11's ranges let a NaN through, and its bounds are inclusive.
Status checkNumbers(const TrainOptions &o) {
  struct Number {
    const char *flag;
    double value, low, below; ///< low <= value < below
  };
  constexpr double any = std::numeric_limits<double>::infinity();
  for (const Number &n :
       {Number{"--beta1", o.beta1, 0, 1}, Number{"--beta2", o.beta2, 0, 1},
        Number{"--eps", o.eps, 0, any}, Number{"--weight-decay", o.weightDecay, 0, any},
        Number{"--clip-grad", o.clipGrad, 0, any},
        Number{"--loss-scale", o.lossScale.initial, LossScale::least, LossScale::most + 1},
        Number{"--loss-scale-growth", o.lossScale.growth, 1, any},
        Number{"--loss-scale-backoff", o.lossScale.backoff, 0, 1}})
    if (!(n.value >= n.low && n.value < n.below))
      return Status::user(fmt::format("{} {}: expected a number from {} to below {}", n.flag,
                                      n.value, n.low, n.below));
  return Status();
}

} // namespace

void TrainFlags::add(CLI::App &command) {
  addData(command);
  addSchedule(command);
  addLossScale(command);
  addState(command);
  addOutput(command);
}

void TrainFlags::addData(CLI::App &command) {
  TrainOptions &o = options;
  command
      .add_option("--data", o.data,
                  "training tokens: text (taken as bytes), nanoGPT or llm.c file, or a folder, of "
                  "which files named train are read and files named val are not")
      ->required();
  command.add_option("--steps", o.steps, "optimizer steps of the whole run")
      ->required()
      ->check(wholeNumber(1));
  command
      .add_option("--data-order", order,
                  "shuffled (by seed and epoch) or sequential (B*T tokens further each microbatch)")
      ->capture_default_str()
      ->check(CLI::IsMember({"shuffled", "sequential"}));
  command.add_option("--val-data", o.valData,
                     "validation tokens, in the same formats; of a folder, files named val");
  command
      .add_option("--val-every", o.valEvery,
                  "steps between validations; 0 = after the last step only")
      ->capture_default_str()
      ->check(wholeNumber(0));
  command.add_option("--val-batches", o.valBatches, "most batches of a validation; 0 = all")
      ->capture_default_str()
      ->check(wholeNumber(0));
}

void TrainFlags::addSchedule(CLI::App &command) {
  TrainOptions &o = options;
  command.add_option("--lr", o.schedule.peak, "peak learning rate")->capture_default_str();
  command.add_option("--min-lr", minLr, "learning rate at the end [lr / 10]");
  command.add_option("--warmup", o.schedule.warmup, "steps of linear warm-up from 0")
      ->capture_default_str()
      ->check(wholeNumber(0));
  command
      .add_option("--lr-decay", decay,
                  "from --lr to --min-lr: cosine, linear, wsd (linear in the last tenth of the "
                  "steps), constant (never)")
      ->capture_default_str()
      ->check(CLI::IsMember({"cosine", "linear", "wsd", "constant"}));
  command.add_option("--beta1", o.beta1, "decay of the first moment, or momentum")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--beta2", o.beta2, "decay of the second moment")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--eps", o.eps, "added to the root of the second moment")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--weight-decay", o.weightDecay,
                  "decoupled decay of matrices and embeddings (biases and norms have none)")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--clip-grad", o.clipGrad, "largest global norm of the gradients; 0 = off")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void TrainFlags::addLossScale(CLI::App &command) {
  LossScaleOptions &scale = options.lossScale;
  command.add_option("--loss-scale", scale.initial, "first loss scale of an fp16 executable")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 0x1p24));
  command.add_option("--loss-scale-growth", scale.growth, "factor after a stretch of finite steps")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1024.0));
  command.add_option("--loss-scale-backoff", scale.backoff, "factor after a step that overflowed")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--loss-scale-interval", scale.interval, "finite steps in a row before it grows")
      ->capture_default_str()
      ->check(wholeNumber(1));
}

void TrainFlags::addState(CLI::App &command) {
  TrainOptions &o = options;
  command.add_option("--seed", o.seed, "of initial values and data order")
      ->capture_default_str()
      ->check(wholeNumber(0, UINT64_MAX));
  command.add_option("--init", init,
                     "initial values: family (the model's own), normal, xavier, kaiming or "
                     "orthogonal [what was compiled in]");
  command.add_option("--init-weights", o.initWeights,
                     "start from these weights: a safetensors file, or a folder with them");
  command.add_option("--checkpoint-dir", o.checkpointDir,
                     "save checkpoints in this folder, the last step's always");
  command
      .add_option("--checkpoint-every", o.checkpointEvery,
                  "steps between checkpoints; 0 = the last step's only")
      ->capture_default_str()
      ->check(wholeNumber(0));
  command.add_option("--keep", o.keep, "checkpoints to keep, at least 2")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000000));
  command.add_flag("--resume", o.resume,
                   "continue from the newest valid checkpoint of --checkpoint-dir; without one, "
                   "start afresh");
}

void TrainFlags::addOutput(CLI::App &command) {
  TrainOptions &o = options;
  command.add_option("--metrics", o.metrics, "write a JSON object a step to this file");
  command.add_option("--tensorboard", o.tensorboard, "write event files into this folder");
  command.add_option("--trace", o.trace,
                     "write the times of all launches to this file, in Chrome's trace format");
  command.add_option("--trace-steps", o.traceSteps, "steps to trace, from the first one run")
      ->capture_default_str()
      ->check(wholeNumber(1));
  command.add_flag("--check-nans", o.checkNans,
                   "before each step find the first tensor that is not finite (about twice the "
                   "time)");
  command.add_option("--dump-grads", o.dumpGrads,
                     "write the last step's gradients, before clipping, to this safetensors file");
  command.add_option("--save-weights", o.saveWeights,
                     "write the final weights to this safetensors file, by Hugging Face's names");
}

Expected<TrainOptions> TrainFlags::finish(const CLI::App &command) {
  TrainOptions &o = options;
  o.schedule.floor = minLr.value_or(o.schedule.peak / 10);
  o.schedule.steps = o.steps;
  o.schedule.decay = decayNamed(decay);
  GRADC_RETURN_IF_ERROR(validate(o.schedule));
  GRADC_RETURN_IF_ERROR(checkNumbers(o));
  o.dataOrder = order == "shuffled" ? DataOrder::shuffled : DataOrder::sequential;
  o.dataOrderGiven = command.count("--data-order") > 0;
  o.seedGiven = command.count("--seed") > 0;
  if (init) {
    GRADC_ASSIGN_OR_RETURN(o.init, parseInitKind(*init));
    if (!o.initWeights.empty())
      return Status::user("--init and --init-weights: expected one of them, not both");
  }
  if (o.checkpointDir.empty() && (o.resume || o.checkpointEvery > 0))
    return Status::user(fmt::format("{}: needs --checkpoint-dir too",
                                    o.resume ? "--resume" : "--checkpoint-every"));
  if (o.valData.empty() && o.valEvery > 0)
    return Status::user("--val-every: needs --val-data too");
  for (const char *flag :
       {"--loss-scale", "--loss-scale-growth", "--loss-scale-backoff", "--loss-scale-interval"})
    if (o.lossScaleFlag.empty() && command.count(flag) > 0)
      o.lossScaleFlag = flag;
  return o;
}

} // namespace gradc::rt

// See TrainFlags.h.
#include "runtime/app/TrainFlags.h"

#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/app/NumberFlags.h"

namespace gradc::rt {
namespace {

LrDecay decayNamed(const std::string &name) {
  return std::map<std::string, LrDecay>{{"cosine", LrDecay::cosine},
                                        {"linear", LrDecay::linear},
                                        {"wsd", LrDecay::wsd},
                                        {"constant", LrDecay::constant}}
      .at(name);
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
  addNumber(command, "--val-every", o.valEvery,
            "steps between validations; 0 = after the last step only", wholeNumber(0));
  addNumber(command, "--val-batches", o.valBatches, "most batches of a validation; 0 = all",
            wholeNumber(0));
}

void TrainFlags::addSchedule(CLI::App &command) {
  TrainOptions &o = options;
  command.add_option("--lr", o.schedule.peak, "peak learning rate")->capture_default_str();
  command.add_option("--min-lr", minLr, "learning rate at the end [lr / 10]");
  addNumber(command, "--warmup", o.schedule.warmup, "steps of linear warm-up from 0",
            wholeNumber(0));
  command
      .add_option("--lr-decay", decay,
                  "from --lr to --min-lr: cosine, linear, wsd (linear in the last tenth of the "
                  "steps), constant (never)")
      ->capture_default_str()
      ->check(CLI::IsMember({"cosine", "linear", "wsd", "constant"}));
  addNumber(command, "--beta1", o.beta1, "decay of the first moment, or momentum", fraction());
  addNumber(command, "--beta2", o.beta2, "decay of the second moment", fraction());
  addNumber(command, "--eps", o.eps, "added to the root of the second moment", realNumber(0));
  addNumber(command, "--weight-decay", o.weightDecay,
            "decoupled decay of matrices and embeddings (biases and norms have none)",
            realNumber(0));
  addNumber(command, "--clip-grad", o.clipGrad, "largest global norm of the gradients; 0 = off",
            realNumber(0));
}

void TrainFlags::addLossScale(CLI::App &command) {
  LossScaleOptions &scale = options.lossScale;
  addNumber(command, "--loss-scale", scale.initial, "first loss scale of an fp16 executable",
            realNumber(LossScale::least, LossScale::most));
  addNumber(command, "--loss-scale-growth", scale.growth, "factor after a stretch of finite steps",
            realNumber(1, 1024));
  addNumber(command, "--loss-scale-backoff", scale.backoff, "factor after a step that overflowed",
            fraction());
  addNumber(command, "--loss-scale-interval", scale.interval,
            "finite steps in a row before it grows", wholeNumber(1));
}

void TrainFlags::addState(CLI::App &command) {
  TrainOptions &o = options;
  addNumber(command, "--seed", o.seed, "of initial values, data order and dropout",
            wholeNumber(0, UINT64_MAX));
  command.add_option("--init", init,
                     "initial values: family (the model's own), normal, xavier, kaiming or "
                     "orthogonal [what was compiled in]");
  command.add_option("--init-weights", o.initWeights,
                     "start from these weights: a safetensors file, or a folder with them");
  command.add_option("--checkpoint-dir", o.checkpointDir,
                     "save checkpoints in this folder, the last step's always");
  addNumber(command, "--checkpoint-every", o.checkpointEvery,
            "steps between checkpoints; 0 = the last step's only", wholeNumber(0));
  addNumber(command, "--keep", o.keep, "checkpoints to keep, at least 2", wholeNumber(2, 1000000));
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
  addNumber(command, "--trace-steps", o.traceSteps, "steps to trace, from the first one run",
            wholeNumber(1));
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

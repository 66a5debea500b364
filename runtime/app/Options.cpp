// The command line, as CLI11 sees it.
#include "runtime/app/Options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

LrDecay decayNamed(const std::string &name) {
  return std::map<std::string, LrDecay>{{"cosine", LrDecay::cosine},
                                        {"linear", LrDecay::linear},
                                        {"wsd", LrDecay::wsd},
                                        {"constant", LrDecay::constant}}
      .at(name);
}

/// What the arguments are first parsed into where the final type needs a second look.
struct Raw {
  TrainOptions train;
  EvalOptions eval;
  BenchOptions bench;
  GenerateOptions generate;
  InfoOptions info;
  std::optional<double> minLr;
  std::string decay = "cosine", order = "shuffled";
  std::optional<std::string> init;
};

void addThreads(CLI::App &command, int &threads) {
  threads = availableProcessors();
  command.add_option("--threads", threads, "compute threads; results do not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
}

void addWeights(CLI::App &command, WeightOptions &weights) {
  auto *file = command.add_option("--init-weights", weights.initWeights,
                                  "weights: a safetensors file, or a folder with them");
  command
      .add_option("--checkpoint-dir", weights.checkpointDir,
                  "weights: the newest checkpoint in this folder")
      ->excludes(file);
}

void addTrainSchedule(CLI::App &command, Raw &raw) {
  TrainOptions &o = raw.train;
  command.add_option("--lr", o.schedule.peak, "peak learning rate")->capture_default_str();
  command.add_option("--min-lr", raw.minLr, "learning rate at the end [lr / 10]");
  command.add_option("--warmup", o.schedule.warmup, "steps of linear warm-up from 0")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--lr-decay", raw.decay,
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

void addLossScale(CLI::App &command, LossScaleOptions &scale) {
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
      ->check(CLI::PositiveNumber);
}

void addTrainData(CLI::App &command, Raw &raw) {
  TrainOptions &o = raw.train;
  command
      .add_option("--data", o.data,
                  "training tokens: text (taken as bytes), nanoGPT or llm.c file, or a folder, of "
                  "which files named train are read and files named val are not")
      ->required();
  command.add_option("--steps", o.steps, "optimizer steps of the whole run")
      ->required()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--data-order", raw.order,
                  "shuffled (by seed and epoch) or sequential (B*T tokens further each microbatch)")
      ->capture_default_str()
      ->check(CLI::IsMember({"shuffled", "sequential"}));
  command.add_option("--val-data", o.valData,
                     "validation tokens, in the same formats; of a folder, files named val");
  command
      .add_option("--val-every", o.valEvery,
                  "steps between validations; 0 = after the last step only")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--val-batches", o.valBatches, "most batches of a validation; 0 = all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void addTrainState(CLI::App &command, Raw &raw) {
  addLossScale(command, raw.train.lossScale);
  TrainOptions &o = raw.train;
  command.add_option("--seed", o.seed, "of initial values and data order")->capture_default_str();
  command.add_option("--init", raw.init,
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
      ->check(CLI::NonNegativeNumber);
  command.add_option("--keep", o.keep, "checkpoints to keep, at least 2")
      ->capture_default_str()
      ->check(CLI::Range(2, 1000000));
  command.add_flag("--resume", o.resume,
                   "continue from the newest valid checkpoint of --checkpoint-dir; without one, "
                   "start afresh");
}

void addTrainOutput(CLI::App &command, Raw &raw) {
  TrainOptions &o = raw.train;
  command.add_option("--metrics", o.metrics, "write a JSON object a step to this file");
  command.add_option("--tensorboard", o.tensorboard, "write event files into this folder");
  command.add_option("--trace", o.trace,
                     "write the times of all launches to this file, in Chrome's trace format");
  command.add_option("--trace-steps", o.traceSteps, "steps to trace, from the first one run")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_flag("--check-nans", o.checkNans,
                   "before each step find the first tensor that is not finite (about twice the "
                   "time)");
  command.add_option("--dump-grads", o.dumpGrads,
                     "write the last step's gradients, before clipping, to this safetensors file");
  command.add_option("--save-weights", o.saveWeights,
                     "write the final weights to this safetensors file, by Hugging Face's names");
  addThreads(command, o.threads);
}

void addGenerate(CLI::App &command, GenerateOptions &o) {
  auto *text = command.add_option("--prompt", o.prompt, "text to continue (models of bytes)");
  command.add_option("--prompt-ids", o.promptIds, "token ids to continue, e.g. 1,2,3")
      ->delimiter(',')
      ->take_all()
      ->excludes(text);
  command.add_option("--tokens", o.tokens, "tokens to generate")
      ->required()
      ->check(CLI::PositiveNumber);
  command.add_option("--temperature", o.temperature, "divides the logits; 0 = the likeliest token")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--top-k", o.topK, "choose among the k likeliest tokens; 0 = all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", o.seed, "of the choice")->capture_default_str();
  addWeights(command, o.weights);
  addThreads(command, o.threads);
}

void addEval(CLI::App &command, EvalOptions &o) {
  command
      .add_option("--data", o.data,
                  "tokens: text, nanoGPT or llm.c file, or a folder, of which files named val are "
                  "read where there are some")
      ->required();
  command.add_option("--batches", o.batches, "most batches to evaluate; 0 = all")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", o.json, "print a JSON object");
  addWeights(command, o.weights);
  addThreads(command, o.threads);
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

Expected<Command> finishTrain(CLI::App &command, Raw &raw) {
  TrainOptions &o = raw.train;
  o.schedule.floor = raw.minLr.value_or(o.schedule.peak / 10);
  o.schedule.steps = o.steps;
  o.schedule.decay = decayNamed(raw.decay);
  GRADC_RETURN_IF_ERROR(validate(o.schedule));
  GRADC_RETURN_IF_ERROR(checkNumbers(o));
  o.dataOrder = raw.order == "shuffled" ? DataOrder::shuffled : DataOrder::sequential;
  o.dataOrderGiven = command.count("--data-order") > 0;
  o.seedGiven = command.count("--seed") > 0;
  if (raw.init) {
    GRADC_ASSIGN_OR_RETURN(o.init, parseInitKind(*raw.init));
    if (!o.initWeights.empty())
      return Status::user("--init and --init-weights: expected one of them, not both");
  }
  if (o.checkpointDir.empty() && (o.resume || o.checkpointEvery > 0))
    return Status::user(fmt::format("{}: needs --checkpoint-dir too",
                                    o.resume ? "--resume" : "--checkpoint-every"));
  if (o.valData.empty() && o.valEvery > 0)
    return Status::user("--val-every: needs --val-data too");
  return Command(o);
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

} // namespace

Expected<Command> parseCommandLine(int argc, const char *const *argv) {
  Raw raw;
  CLI::App app("A training program for one model, compiled by gradc. Exit codes: 0 done, 1 wrong "
               "input, 2 a fault of the machine, 70 a defect of gradc.");
  app.option_defaults()->take_last(); // a script's flags can be overridden by appending
  app.require_subcommand(1);
  auto *train = app.add_subcommand("train", "train the model");
  addTrainData(*train, raw);
  addTrainSchedule(*train, raw);
  addTrainState(*train, raw);
  addTrainOutput(*train, raw);
  auto *eval = app.add_subcommand("eval", "loss (weighted by tokens) and perplexity on a text");
  addEval(*eval, raw.eval);
  auto *bench = app.add_subcommand("bench", "time training steps on random tokens");
  bench->add_option("--steps", raw.bench.steps, "steps to time, after two to warm up")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  bench->add_flag("--json", raw.bench.json, "print a JSON object");
  addThreads(*bench, raw.bench.threads);
  auto *generate = app.add_subcommand("generate", "continue a prompt");
  addGenerate(*generate, raw.generate);
  auto *info = app.add_subcommand("info", "what was compiled in");
  info->add_flag("--json", raw.info.json, "print a JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == int(CLI::ExitCodes::Success)) {
      app.exit(error); // prints the help that was asked for
      return Command(NoCommand());
    }
    return Status::user(oneLine(error.what()) + "; --help lists the options");
  }
  if (*train)
    return finishTrain(*train, raw);
  if (*eval)
    return Command(raw.eval);
  if (*bench)
    return Command(raw.bench);
  if (*info)
    return Command(raw.info);
  if (!raw.generate.prompt && raw.generate.promptIds.empty())
    return Status::user("generate: expected --prompt TEXT or --prompt-ids 1,2,3");
  if (!std::isfinite(raw.generate.temperature))
    return Status::user("--temperature: expected a finite number");
  return Command(raw.generate);
}

} // namespace gradc::rt

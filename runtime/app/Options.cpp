// The command line, as CLI11 sees it.
#include "runtime/app/Options.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "runtime/Device.h"
#include "runtime/app/NumberFlags.h"
#include "runtime/app/TrainFlags.h"
#include "runtime/cpu/ThreadPool.h"

namespace gradc::rt {
namespace {

void addThreads(CLI::App &command, int &threads) {
  threads = availableProcessors();
  addNumber(command, "--threads", threads, "compute threads; results do not depend on it",
            wholeNumber(1, 4096));
}

void addAutotune(CLI::App &command, bool &autotune, const GradcDeviceKind &device) {
  auto *flag =
      command.add_flag("--autotune", autotune,
                       "choose the GPU library's algorithms by measuring, once; kept in a cache "
                       "($GRADC_CACHE_DIR, else ~/.cache/gradc)");
  if (!device.hasAlgorithms)
    flag->group(""); // not listed
}

void addWeights(CLI::App &command, WeightOptions &weights) {
  auto *file = command.add_option("--init-weights", weights.initWeights,
                                  "weights: a safetensors file, or a folder with them");
  command
      .add_option("--checkpoint-dir", weights.checkpointDir,
                  "weights: the newest checkpoint in this folder")
      ->excludes(file);
}

void addGenerate(CLI::App &command, GenerateOptions &o) {
  auto *text = command.add_option("--prompt", o.prompt, "text to continue (models of bytes)");
  command.add_option("--prompt-ids", o.promptIds, "token ids to continue, e.g. 1,2,3")
      ->delimiter(',')
      ->take_all()
      ->excludes(text);
  command.add_option("--tokens", o.tokens, "tokens to generate")->required()->check(wholeNumber(1));
  addNumber(command, "--temperature", o.temperature, "divides the logits; 0 = the likeliest token",
            realNumber(0));
  addNumber(command, "--top-k", o.topK, "choose among the k likeliest tokens; 0 = all",
            wholeNumber(0));
  addNumber(command, "--seed", o.seed, "of the choice", wholeNumber(0, UINT64_MAX));
  addWeights(command, o.weights);
  addThreads(command, o.threads);
}

void addEval(CLI::App &command, EvalOptions &o) {
  command
      .add_option("--data", o.data,
                  "tokens: text, nanoGPT or llm.c file, or a folder, of which files named val are "
                  "read where there are some")
      ->required();
  addNumber(command, "--batches", o.batches, "most batches to evaluate; 0 = all", wholeNumber(0));
  command.add_flag("--json", o.json, "print a JSON object");
  addWeights(command, o.weights);
  addThreads(command, o.threads);
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

} // namespace

Expected<Command> parseCommandLine(int argc, const char *const *argv,
                                   const GradcDeviceKind &device) {
  TrainFlags trainFlags;
  EvalOptions evalOptions;
  BenchOptions benchOptions;
  GenerateOptions generateOptions;
  InfoOptions infoOptions;
  CLI::App app("A training program for one model, compiled by gradc. Exit codes: 0 done, 1 wrong "
               "input, 2 a fault of the machine, 70 a defect of gradc.");
  app.require_subcommand(1);
  auto *train = app.add_subcommand("train", "train the model");
  trainFlags.add(*train);
  addAutotune(*train, trainFlags.options.autotune, device);
  addThreads(*train, trainFlags.options.threads);
  auto *eval = app.add_subcommand(
      "eval",
      "loss (weighted by tokens) and perplexity on a text: all of it, which takes long where "
      "it is large; --batches bounds it");
  addEval(*eval, evalOptions);
  auto *bench = app.add_subcommand("bench", "time training steps on random tokens");
  addNumber(*bench, "--steps", benchOptions.steps, "steps to time, after two to warm up",
            wholeNumber(1));
  bench->add_flag("--json", benchOptions.json, "print a JSON object");
  addAutotune(*bench, benchOptions.autotune, device);
  addThreads(*bench, benchOptions.threads);
  auto *generate = app.add_subcommand("generate", "continue a prompt");
  addGenerate(*generate, generateOptions);
  auto *info = app.add_subcommand("info", "what was compiled in");
  info->add_flag("--json", infoOptions.json, "print a JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == int(CLI::ExitCodes::Success)) {
      app.exit(error); // prints the help that was asked for
      return Command(NoCommand());
    }
    return Status::user(oneLine(error.what()) + "; --help lists the options");
  }
  if ((trainFlags.options.autotune || benchOptions.autotune) && !device.hasAlgorithms)
    return Status::user("--autotune: chooses among the algorithms of a GPU's library, and this "
                        "program runs on none; leave it out");
  if (*train) {
    GRADC_ASSIGN_OR_RETURN(TrainOptions options, trainFlags.finish(*train));
    return Command(options);
  }
  if (*eval)
    return Command(evalOptions);
  if (*bench)
    return Command(benchOptions);
  if (*info)
    return Command(infoOptions);
  if (!generateOptions.prompt && generateOptions.promptIds.empty())
    return Status::user("generate: expected --prompt TEXT or --prompt-ids 1,2,3");
  return Command(generateOptions);
}

} // namespace gradc::rt

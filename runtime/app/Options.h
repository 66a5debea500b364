// The arguments of each command, as parsed; names, defaults and units are those of --help.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/Abi.h"
#include "runtime/Init.h"
#include "runtime/LossScale.h"
#include "runtime/Schedule.h"
#include "runtime/Status.h"
#include "runtime/data/Batches.h"

namespace gradc::rt {

struct TrainOptions {
  std::string data, valData;
  DataOrder dataOrder = DataOrder::shuffled;
  bool dataOrderGiven = false;
  int64_t steps = 0;
  int64_t valEvery = 0;   ///< steps; 0: after the last step only
  int64_t valBatches = 0; ///< at most so many batches a validation; 0: all
  Schedule schedule;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1, clipGrad = 1.0;
  uint64_t seed = 42;
  bool seedGiven = false;
  std::optional<InitKind> init; ///< none: what the executable was compiled for
  std::string initWeights;
  std::string checkpointDir;
  int64_t checkpointEvery = 0; ///< steps; 0: after the last step only
  int keep = 3;
  bool resume = false;
  LossScaleOptions lossScale; ///< of fp16
  std::string lossScaleFlag;  ///< the first flag that was given for it; empty: none
  std::string metrics, tensorboard, trace;
  int64_t traceSteps = 10;
  bool checkNans = false;
  std::string dumpGrads, saveWeights;
  bool autotune = false;
  int threads = 0;
};

/// Where eval and generate take their weights: a file, or the newest checkpoint of a folder.
struct WeightOptions {
  std::string initWeights, checkpointDir;
};

struct EvalOptions {
  std::string data;
  WeightOptions weights;
  int64_t batches = 0; ///< 0: all
  bool json = false;
  int threads = 0;
};

struct BenchOptions {
  int64_t steps = 10;
  bool json = false;
  bool autotune = false;
  int threads = 0;
};

struct GenerateOptions {
  std::optional<std::string> prompt;
  std::vector<int32_t> promptIds;
  int64_t tokens = 0;
  double temperature = 0.8; ///< 0: the likeliest token
  int64_t topK = 0;         ///< 0: all tokens
  uint64_t seed = 42;
  WeightOptions weights;
  int threads = 0;
};

struct InfoOptions {
  bool json = false;
};

/// Help was printed: nothing is left to do.
struct NoCommand {};

using Command =
    std::variant<NoCommand, TrainOptions, EvalOptions, BenchOptions, GenerateOptions, InfoOptions>;

/// Parses and checks the arguments for a program on such a device; --help prints to standard output
/// and gives NoCommand.
Expected<Command> parseCommandLine(int argc, const char *const *argv,
                                   const GradcDeviceKind &device);

} // namespace gradc::rt

// The flags of `train`: declared to CLI11, and read and checked once it has parsed them.
#pragma once

#include <optional>
#include <string>

#include "runtime/app/Options.h"

namespace CLI {
class App;
}

namespace gradc::rt {

/// CLI11 keeps pointers to the members: it must outlive the parse, and stay where it is.
class TrainFlags {
public:
  /// Declares every flag of `train` but --threads, which the commands share.
  void add(CLI::App &command);
  /// After the parse of `command`: the options, or what is wrong with them together.
  Expected<TrainOptions> finish(const CLI::App &command);

  TrainOptions options;

private:
  void addData(CLI::App &command);
  void addSchedule(CLI::App &command);
  void addLossScale(CLI::App &command);
  void addState(CLI::App &command);
  void addOutput(CLI::App &command);

  // What needs a second look before it is an option.
  std::optional<double> minLr;
  std::string decay = "cosine", order = "shuffled";
  std::optional<std::string> init;
};

} // namespace gradc::rt

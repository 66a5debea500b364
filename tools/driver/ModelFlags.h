// The flags that compile, plan and explain share: what to make of a model.
#pragma once

#include "tools/driver/Compile.h"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace gradc {

/// Flags of the contract whose other values later versions bring; refused by name, never ignored.
class FixedFlags {
public:
  void add(CLI::App &app);
  Failure check() const;

private:
  std::string mesh, schedule;
  int zero = 0;
  bool deterministic = false;
};

/// CLI11 keeps pointers to the members: they must outlive the parse, and stay where they are.
class ModelFlags {
public:
  /// Declares the flags and the positional MODEL of a command, which outlives the object.
  void add(CLI::App &app);
  /// After the parse: completes `request`, or says what is wrong with the flags together.
  Failure finish();
  /// The first flag that was given, of those that describe a model; empty where there is none.
  std::string firstGiven() const;

  CompileRequest request;

private:
  void addShape(CLI::App &app);
  void addNumerics(CLI::App &app);
  void addDocuments(CLI::App &app);
  void addMemory(CLI::App &app);
  void addCode(CLI::App &app);
  Failure finishDocuments();
  Failure finishMemory();

  const CLI::App *command = nullptr;
  FixedFlags fixed;
  int64_t microBatch = 0, seq = 0; ///< 0: not given
  std::string fuse = "on", epilogues = "on", dropout = "config", documentMask = "off", budget;
  std::string lossChunk = "auto";
  std::optional<int64_t> documentSeparator;
};

} // namespace gradc

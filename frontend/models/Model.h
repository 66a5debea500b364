// A model family: reads its settings from config.json and builds its forward graph. To add one:
// write its file beside Gpt2.cpp and its line in the table of Families.cpp.
#pragma once

#include "frontend/Config.h"
#include "frontend/GraphBuilder.h"
#include <memory>

namespace gradc {

/// What to do with a dropout that the configuration asks for.
enum class DropoutPolicy {
  asConfigured,
  off, ///< trained without
};

/// A configured model. Holds settings only; builds any number of functions.
class Model {
public:
  virtual ~Model() = default;
  virtual int64_t vocab() const = 0;
  virtual int64_t maxPositions() const = 0;
  /// The config key that maxPositions comes from, for errors.
  virtual llvm::StringRef maxPositionsKey() const = 0;
  /// What parameter names begin with in a file of the model with its head, and lack in a file of
  /// the bare model, e.g. "transformer.".
  virtual llvm::StringRef namePrefix() const = 0;
  /// Token ids to [tokens, features] after the last norm.
  virtual mlir::Value hidden(GraphBuilder &graph, TokenShape shape) const = 0;
  /// [n, features] to [n, vocab].
  virtual mlir::Value logits(GraphBuilder &graph, mlir::Value hidden) const = 0;
};

struct ModelFamily {
  llvm::StringRef modelType;
  /// Reads every key of the family. What it returns is of use only where the reader finishes
  /// without an error.
  std::unique_ptr<Model> (*read)(ConfigReader &config, DropoutPolicy dropout);
};

/// All families, by model_type.
llvm::ArrayRef<ModelFamily> modelFamilies();

/// The configured model, or the first thing wrong with `file`.
llvm::Expected<std::unique_ptr<Model>> readModel(const ConfigFile &file, DropoutPolicy dropout);

// --- what the families' readers share

/// Upper bounds of sizes, wide enough for any model and so tight that no product of them
/// overflows 63 bits.
namespace limits {
constexpr int64_t vocab = int64_t(1) << 24;
constexpr int64_t positions = int64_t(1) << 31;
constexpr int64_t width = int64_t(1) << 20;
constexpr int64_t innerWidth = int64_t(1) << 22;
constexpr int64_t heads = int64_t(1) << 12;
constexpr int64_t headDim = int64_t(1) << 10;
constexpr int64_t layers = int64_t(1) << 12;
constexpr double epsilon = 1e-30; ///< lower bound: a norm divides by its root
} // namespace limits

/// Ignores what transformers writes into every config.json that does not change training, and
/// refuses the common settings that would and are not implemented.
void readCommonKeys(ConfigReader &config);
/// The activation function under `key`, in the names transformers gives them.
nn::ActivationKind readActivation(ConfigReader &config, llvm::StringRef key,
                                  llvm::StringRef fallback);
/// The dropout probability under `key`, below 1; 0 where the policy turns it off.
double readDropout(ConfigReader &config, llvm::StringRef key, double fallback,
                   DropoutPolicy policy);

} // namespace gradc

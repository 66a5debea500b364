// From a model definition to a module in the nn dialect.
//
// The module holds `@loss(parameters…, tokens, targets)` and, where the definition has it,
// `@logits(parameters…, tokens, position)`; see the nn dialect's description. Its attributes:
//
//   nn.model  on the module: {family, vocab, max_positions, micro_batch, seq, parameters, prefix,
//             config}, and document_separator where there is one: what ModelInfo has, under these
//             names.
//   nn.param  on each parameter argument: {name, init_kind = "normal", init_std | init_kind =
//             "constant", init_value, class = "matrix" | "embedding" | "bias" | "norm", fan_in,
//             fan_out, decay}. Always complete, whatever the definition left out.
#pragma once

#include "frontend/models/Model.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>

namespace gradc {

struct ImportOptions {
  /// Rows of a microbatch; by default 1, or as an .mlir module has it.
  std::optional<int64_t> microBatch = std::nullopt;
  /// Tokens of a row; by default the model's positions, 1024 at most, or as an .mlir module has it.
  std::optional<int64_t> seq = std::nullopt;
  DropoutPolicy dropout = DropoutPolicy::asConfigured;
  /// Rows hold documents that neither attention nor positions cross; of config.json models only.
  bool documentMask = false;
  /// The token that ends a document; by default config.json's `eos_token_id`.
  std::optional<int64_t> documentSeparator = std::nullopt;
};

struct ModelInfo {
  std::string family; ///< model_type; for an .mlir module what it says, else "mlir"
  int64_t vocab = 0;
  int64_t maxPositions = 0;
  int64_t microBatch = 0;
  int64_t seq = 0;
  int64_t parameters = 0; ///< elements, a tied weight counted once
  std::string prefix;     ///< of parameter names; files of the bare model leave it out
  std::string config;     ///< config.json as read; empty for an .mlir module
  /// The token that ends a document where documents are masked: its label is ignored.
  std::optional<int64_t> documentSeparator = std::nullopt;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ModelInfo info;
};

/// Reads a config.json, a folder that holds one, or a module (by its suffix .mlir or .mlirbc, or
/// else by its content). Loads the dialects it needs into `context`. Errors are the user's, of one
/// line.
llvm::Expected<ImportedModel> importModel(llvm::StringRef path, const ImportOptions &options,
                                          mlir::MLIRContext &context);

/// The same for a configuration already read.
llvm::Expected<ImportedModel> buildModel(const ConfigFile &file, const ImportOptions &options,
                                         mlir::MLIRContext &context);

/// A module that gradc wrote after a later phase, as it is: verified by MLIR, but not checked for
/// being a model definition. The dialects of that phase must be loaded.
llvm::Expected<ImportedModel> reopenModule(llvm::StringRef path, mlir::MLIRContext &context);

/// What the module's `nn.model` says; nothing where it has none.
std::optional<ModelInfo> modelInfo(mlir::ModuleOp module);

} // namespace gradc

// What the frontend's tests share: importing from text, small configurations, one-line errors.
#pragma once

#include "frontend/Import.h"
#include "mlir/IR/MLIRContext.h"
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gradc::test {

/// Two small models that every test may vary.
inline nlohmann::json smallGpt2() {
  return nlohmann::json::parse(R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 16,
    "n_embd": 8, "n_layer": 2, "n_head": 2, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})");
}
inline nlohmann::json smallLlama() {
  return nlohmann::json::parse(R"({"model_type": "llama", "vocab_size": 11,
    "max_position_embeddings": 64, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2})");
}

/// `base` with the keys of the JSON text `changes` set.
inline nlohmann::json with(nlohmann::json base, llvm::StringRef changes) {
  base.update(nlohmann::json::parse(changes.str()));
  return base;
}

inline llvm::Expected<ImportedModel> importText(llvm::StringRef text, mlir::MLIRContext &context,
                                                const ImportOptions &options = {}) {
  llvm::Expected<ConfigFile> file = ConfigFile::parse(text, "config.json");
  return file ? buildModel(*file, options, context) : file.takeError();
}

/// The error, which must be one line; empty where there is none.
template <typename T> std::string errorOf(llvm::Expected<T> result) {
  std::string message = llvm::toString(result.takeError());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

inline std::string errorOfConfig(const nlohmann::json &config, const ImportOptions &options = {}) {
  mlir::MLIRContext context;
  return errorOf(importText(config.dump(), context, options));
}

/// Writes a file under the tests' temporary folder; returns its path.
inline std::string writeTemporary(llvm::StringRef name, llvm::StringRef text) {
  std::string path = testing::TempDir() + name.str();
  std::ofstream(path, std::ios::binary) << text.str();
  return path;
}

} // namespace gradc::test

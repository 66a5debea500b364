// Diagnostics of config.json: every wrong value is refused in one line that names key and mend.
#include "FrontendFixture.h"

using namespace gradc;
using namespace gradc::test;

namespace {

struct WrongValue {
  const char *changes;
  const char *message; ///< after "config.json: "
};

void expectMessages(const nlohmann::json &base, llvm::ArrayRef<WrongValue> cases) {
  ASSERT_EQ(errorOfConfig(base), "");
  for (const WrongValue &wrong : cases)
    EXPECT_EQ(errorOfConfig(with(base, wrong.changes)),
              std::string("config.json: ") + wrong.message)
        << wrong.changes;
}

TEST(FrontendConfig, RefusesWrongGpt2Values) {
  const WrongValue cases[] = {
      {R"({"foo": 1})", R"(key "foo" is not known for model_type gpt2; remove it if it does not )"
                        R"(change the model)"},
      {R"({"n_layers": 1})", R"(key "n_layers" is not known for model_type gpt2; did you mean )"
                             R"("n_layer"?)"},
      {R"({"a\nb": 1})", R"(key "a\nb" is not known for model_type gpt2; remove it if it does not )"
                         R"(change the model)"},
      {R"({"n_layer": "two"})", R"("n_layer" must be an integer from 1 to 4096, got: "two")"},
      {R"({"n_layer": 2.0})", R"("n_layer" must be an integer from 1 to 4096, got: 2.0)"},
      {R"({"n_layer": null})", R"("n_layer" must be an integer from 1 to 4096, got: null)"},
      {R"({"n_layer": true})", R"("n_layer" must be an integer from 1 to 4096, got: true)"},
      {R"({"n_layer": 0})", R"("n_layer" must be an integer from 1 to 4096, got: 0)"},
      {R"({"n_layer": -1})", R"("n_layer" must be an integer from 1 to 4096, got: -1)"},
      {R"({"n_layer": 18446744073709551615})",
       R"("n_layer" must be an integer from 1 to 4096, got: 18446744073709551615)"},
      {R"({"vocab_size": 1000000000000})",
       R"("vocab_size" must be an integer from 1 to 16777216, got: 1000000000000)"},
      {R"({"n_inner": 0})", R"("n_inner" must be an integer from 1 to 4194304, got: 0)"},
      {R"({"n_head": 3})", R"("n_embd" 8 is not a multiple of "n_head" 3; change one of them)"},
      {R"({"layer_norm_epsilon": -1})",
       R"("layer_norm_epsilon" must be a number from 1e-30 to 1.0, got: -1)"},
      {R"({"initializer_range": "0.02"})",
       R"("initializer_range" must be a number from 0.0 to 100.0, got: "0.02")"},
      {R"({"tie_word_embeddings": 1})", R"("tie_word_embeddings" must be true or false, got: 1)"},
      {R"({"activation_function": 5})", R"("activation_function" must be a string, got: 5)"},
      {R"({"activation_function": "quick_gelu"})",
       R"("activation_function": "quick_gelu" is not implemented; use gelu, gelu_new, silu or relu)"},
      {R"({"scale_attn_by_inverse_layer_idx": true})",
       R"("scale_attn_by_inverse_layer_idx": true is not implemented; set it to false)"},
      {R"({"reorder_and_upcast_attn": true})",
       R"("reorder_and_upcast_attn": true is not implemented; set it to false)"},
      {R"({"add_cross_attention": true})",
       R"("add_cross_attention": true is not implemented; set it to false)"},
      {R"({"is_encoder_decoder": true})",
       R"("is_encoder_decoder": true is not implemented; set it to false)"},
      {R"({"pruned_heads": {"1": [0]}})",
       R"("pruned_heads": {"1":[0]} is not implemented; set it to {})"},
      {R"({"quantization_config": {"bits": 4}})",
       R"("quantization_config": {"bits":4} is not implemented; set it to null)"},
      {R"({"attn_pdrop": 1})", R"("attn_pdrop": 1 drops everything; set it below 1)"},
      {R"({"attn_pdrop": 2})", R"("attn_pdrop" must be a number from 0.0 to 1.0, got: 2)"},
      {R"({"model_type": "bert"})",
       R"("model_type": "bert" is not implemented; implemented are gpt2, llama, mistral, qwen2)"},
      {R"({"model_type": 3})", R"("model_type" must be a string, got: 3)"},
  };
  expectMessages(smallGpt2(), cases);
}

TEST(FrontendConfig, RefusesWrongLlamaValues) {
  const WrongValue cases[] = {
      {R"({"num_key_value_heads": 3})", R"("num_attention_heads" 4 is not a multiple of )"
                                        R"("num_key_value_heads" 3; change one of them)"},
      {R"({"num_attention_heads": 6, "num_key_value_heads": 2})",
       R"("hidden_size" 16 is not a multiple of "num_attention_heads" 6; change one of them, or )"
       R"(give "head_dim")"},
      {R"({"head_dim": 5})", R"(the head width 5 is odd, but rotary embedding turns pairs; make )"
                             R"("head_dim" even)"},
      {R"({"hidden_size": 4096, "num_attention_heads": 2, "num_key_value_heads": 2})",
       R"(the head width 2048 is above 1024; use more heads)"},
      {R"({"hidden_act": "mish"})",
       R"("hidden_act": "mish" is not implemented; use gelu, gelu_new, silu or relu)"},
      {R"({"pretraining_tp": 2})", R"("pretraining_tp": 2 is not implemented; set it to 1)"},
      {R"({"attention_dropout": 1.0})",
       R"("attention_dropout": 1.0 drops everything; set it below 1)"},
      {R"({"rope_interleaved": true})",
       R"("rope_interleaved": true is not implemented; set it to false)"},
      {R"({"partial_rotary_factor": 0.5})",
       R"("partial_rotary_factor": 0.5 is not implemented; set it to 1.0)"},
      {R"({"rope_scaling": "llama3"})",
       R"("rope_scaling" must be an object or null, got: "llama3")"},
      {R"({"rope_scaling": {"type": "yarn", "factor": 4}})",
       R"("rope_scaling.type": "yarn" is not implemented; implemented are default, linear and )"
       R"(llama3)"},
      {R"({"rope_parameters": {"rope_type": "longrope"}})",
       R"("rope_parameters.rope_type": "longrope" is not implemented; implemented are default, )"
       R"(linear and llama3)"},
      {R"({"rope_scaling": {"rope_type": "dynamic", "factor": 4}})",
       R"("rope_scaling.rope_type": "dynamic" is not implemented; implemented are default, linear )"
       R"(and llama3)"},
      {R"({"rope_scaling": {"rope_type": "linear"}})",
       R"(key "rope_scaling.factor" is missing; add it)"},
      {R"({"rope_scaling": {"rope_type": "linear", "factor": 0.5}})",
       R"("rope_scaling.factor" must be a number from 1.0 to 1000000000.0, got: 0.5)"},
      {R"({"rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 2}})",
       R"("rope_scaling.type": "llama3" disagrees with "rope_type"; keep one)"},
      {R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 1}})",
       R"(key "rope_scaling.beta_fast" is not known for model_type llama; remove it if it does not )"
       R"(change the model)"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 2, "low_freq_factor": 4,
           "high_freq_factor": 4}})",
       R"("rope_scaling.high_freq_factor": 4 is not above "low_freq_factor"; exchange them)"},
      {R"({"rope_theta": 500, "rope_parameters": {"rope_theta": 600}})",
       R"("rope_theta": 500 disagrees with that of the rope settings; keep one)"},
      {R"({"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {}})",
       R"("rope_scaling" and "rope_parameters" disagree; keep one)"},
      {R"({"rope_theta": 0})",
       R"("rope_theta" must be a number from 1.0 to 1000000000000.0, got: 0)"},
  };
  expectMessages(smallLlama(), cases);
}

TEST(FrontendConfig, RefusesTextThatIsNoConfig) {
  auto error = [](llvm::StringRef text) { return errorOf(ConfigFile::parse(text, "c")); };
  EXPECT_EQ(error(""), "c: is empty; expected a config.json");
  EXPECT_EQ(error(" \n"), "c: is empty; expected a config.json");
  EXPECT_EQ(error("[1]"), "c: holds no JSON object; expected a config.json");
  EXPECT_EQ(error("{\"a\": 1,\n"), "c: is not JSON, or cut short, at line 2");
  EXPECT_EQ(error("{\"a\": 1}\n\nx"), "c: is not JSON, or cut short, at line 3");
  EXPECT_EQ(error("{\"a\": 1e999}"), "c: is not JSON, or cut short, at line 1");
  EXPECT_EQ(error(llvm::StringRef("{}\0{}", 5)), "c: is not JSON, or cut short, at line 1");
  EXPECT_EQ(error("{\"a\": \"\xff\"}"), "c: is not JSON, or cut short, at line 1");
  EXPECT_EQ(error(R"({"a": 1, "b": {"a": 2, "a": 3}})"), "c: has the key \"a\" twice; keep one");
  std::string deep(100000, '[');
  EXPECT_EQ(error("{\"a\": " + deep), "c: is nested more than 64 levels deep, which no config.json "
                                      "is");
  mlir::MLIRContext context;
  EXPECT_EQ(
      errorOf(importText("{}", context)),
      "config.json: key \"model_type\" is missing; set it to one of gpt2, llama, mistral, qwen2");
}

TEST(FrontendConfig, EveryTruncationIsAnError) {
  std::string text = smallGpt2().dump();
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(errorOf(ConfigFile::parse(llvm::StringRef(text).take_front(size), "c")), "") << size;
}

TEST(FrontendConfig, PathsThatHoldNoModel) {
  mlir::MLIRContext context;
  auto error = [&](const std::string &path) { return errorOf(importModel(path, {}, context)); };
  EXPECT_EQ(error("/nonexistent/model"),
            "/nonexistent/model: does not exist; pass a config.json, a folder that holds one, or "
            "an .mlir module");
  std::string folder = testing::TempDir();
  std::remove((folder + "/config.json").c_str());
  EXPECT_EQ(error(folder), folder + ": holds no config.json; pass the folder of a Hugging Face "
                                    "model");
  EXPECT_EQ(error("/nonexistent/model.mlir"),
            "/nonexistent/model.mlir: cannot be read: No such file or directory");
  writeTemporary("config.json", smallGpt2().dump());
  EXPECT_EQ(error(folder), "");
  std::remove((folder + "/config.json").c_str());
}

TEST(FrontendConfig, ShapeMustFitTheModel) {
  EXPECT_EQ(errorOfConfig(smallGpt2(), {.seq = 17}),
            "--seq 17 is above the model's 16 positions (\"n_positions\" in config.json); pass "
            "--seq 16 or less");
  EXPECT_EQ(errorOfConfig(smallLlama(), {.seq = 65}),
            "--seq 65 is above the model's 64 positions (\"max_position_embeddings\" in "
            "config.json); pass --seq 64 or less");
  EXPECT_EQ(errorOfConfig(smallGpt2(), {.seq = 0}), "--seq 0 is not between 1 and 1048576");
  EXPECT_EQ(errorOfConfig(smallGpt2(), {.microBatch = -1}),
            "--micro-batch -1 is not between 1 and 16777216");
  EXPECT_EQ(errorOfConfig(smallGpt2(), {.microBatch = 16777216, .seq = 16}),
            "--micro-batch 16777216 x --seq 16 is above 16777216 tokens a microbatch; pass a "
            "smaller one and --grad-accum");
  EXPECT_EQ(errorOfConfig(smallGpt2(), {.microBatch = 3, .seq = 16}), "");
}

} // namespace

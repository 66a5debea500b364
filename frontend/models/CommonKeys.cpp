// What the families read alike: the keys of every transformers configuration, activation
// functions, dropouts.
#include "frontend/models/Model.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace gradc {

/// What does not change the mathematics.
static constexpr StringRef ignoredKeys[] = {
    // where the file comes from and how the weights are stored
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "architectures",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "unsloth_version",
    "unsloth_fixed",
    "transformers.js_config",
    // how transformers runs the model
    "use_cache",
    "return_dict",
    "use_return_dict",
    "output_attentions",
    "output_hidden_states",
    "tie_last_hidden_states",
    "torchscript",
    "use_bfloat16",
    "tf_legacy_loss",
    "gradient_checkpointing",
    "chunk_size_feed_forward",
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "_attn_implementation_autoset",
    "_flash_attn_2_enabled",
    "is_decoder",
    "cross_attention_hidden_size",
    "tie_encoder_decoder",
    // tokens
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "unk_token_id",
    "decoder_start_token_id",
    "tokenizer_class",
    "prefix",
    // heads for other tasks
    "task_specific_params",
    "finetuning_task",
    "problem_type",
    "id2label",
    "label2id",
    "num_labels",
    "_num_labels",
    "classifier_dropout",
    // generation
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "bad_words_ids",
    "begin_suppress_tokens",
    "diversity_penalty",
    "do_sample",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "epsilon_cutoff",
    "eta_cutoff",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "length_penalty",
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "min_p",
    "no_repeat_ngram_size",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_logits",
    "output_scores",
    "penalty_alpha",
    "remove_invalid_values",
    "renormalize_logits",
    "repetition_penalty",
    "return_dict_in_generate",
    "suppress_tokens",
    "target_lookbehind",
    "temperature",
    "top_k",
    "top_p",
    "typical_p", //
};

void readCommonKeys(ConfigReader &config) {
  config.ignore(ignoredKeys);
  config.accept("is_encoder_decoder", {"false"});
  config.accept("add_cross_attention", {"false"});
  config.accept("pruned_heads", {"{}"});
  config.accept("per_layer_config", {"null", "{}"});
  config.accept("quantization_config", {"null"});
}

nn::ActivationKind readActivation(ConfigReader &config, StringRef key, StringRef fallback) {
  using Kind = nn::ActivationKind;
  auto kind = llvm::StringSwitch<std::optional<Kind>>(config.string(key, fallback))
                  .Cases({"gelu", "gelu_python"}, Kind::Gelu)
                  .Cases({"gelu_new", "gelu_pytorch_tanh", "gelu_python_tanh"}, Kind::GeluTanh)
                  .Cases({"gelu_fast", "gelu_accurate"}, Kind::GeluTanh)
                  .Cases({"silu", "swish"}, Kind::Silu)
                  .Case("relu", Kind::Relu)
                  .Default(std::nullopt);
  if (!kind)
    config.refuse(key, "is not implemented; use gelu, gelu_new, silu or relu");
  return kind.value_or(Kind::Gelu);
}

double readDropout(ConfigReader &config, StringRef key, double fallback, DropoutPolicy policy) {
  double probability = config.number(key, fallback, 0, 1, /*nullable=*/true);
  if (policy == DropoutPolicy::off)
    return 0;
  if (probability >= 1)
    config.refuse(key, "drops everything; set it below 1");
  return probability;
}

} // namespace gradc

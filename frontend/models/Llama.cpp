// Llama: RMSNorm, rotary positions, grouped-query attention, a gated MLP, weights [out, in].
#include "frontend/models/Llama.h"
#include <cmath>

using llvm::Twine;
using mlir::Value;

namespace gradc {
namespace {

class Llama : public Model {
public:
  explicit Llama(const LlamaSettings &settings) : s(settings) {}
  int64_t vocab() const override { return s.vocab; }
  int64_t maxPositions() const override { return s.positions; }
  llvm::StringRef maxPositionsKey() const override { return "max_position_embeddings"; }
  llvm::StringRef namePrefix() const override { return "model."; }

  Value hidden(GraphBuilder &graph, TokenShape shape) const override {
    graph.at("embed_tokens");
    Value x = graph.embedding(graph.tokens(), tokenTable(graph));
    graph.at("rotary_emb");
    RopeTables tables = ropeTables(s.rope, s.headDim, shape.seq);
    Value cos = graph.constant(tables.cos, {shape.seq, s.headDim / 2});
    Value sin = graph.constant(tables.sin, {shape.seq, s.headDim / 2});
    for (int64_t layer = 0; layer < s.layers; ++layer) {
      std::string name = "model.layers." + std::to_string(layer);
      int64_t window = layer >= s.firstWindowLayer && s.window < shape.seq ? s.window : 0;
      x = graph.add(x, attention(graph, x, name, cos, sin, shape, window));
      x = graph.add(x, mlp(graph, x, name));
    }
    graph.at("norm");
    return graph.rmsNorm(x, "model.norm", s.epsilon);
  }

  Value logits(GraphBuilder &graph, Value hidden) const override {
    graph.at("lm_head");
    if (s.tied)
      return graph.matmulTransposed(hidden, tokenTable(graph));
    return graph.linear(hidden, {"lm_head", s.width, s.vocab, s.deviation});
  }

private:
  Value tokenTable(GraphBuilder &graph) const {
    return graph.table("model.embed_tokens.weight", s.vocab, s.width, s.deviation);
  }

  Value attention(GraphBuilder &graph, Value x, const std::string &layer, Value cos, Value sin,
                  TokenShape shape, int64_t window) const {
    std::string name = layer + ".self_attn";
    auto project = [&](Value input, const Twine &part, int64_t in, int64_t out, bool bias) {
      return graph.linear(input, {(name + part).str(), in, out, s.deviation, bias});
    };
    graph.at(name);
    Value normed = graph.rmsNorm(x, layer + ".input_layernorm", s.epsilon);
    int64_t queryWidth = s.heads * s.headDim, keyWidth = s.kvHeads * s.headDim;
    Value query = project(normed, ".q_proj", s.width, queryWidth, s.projectionBias);
    Value key = project(normed, ".k_proj", s.width, keyWidth, s.projectionBias);
    Value value = project(normed, ".v_proj", s.width, keyWidth, s.projectionBias);
    query = graph.rope(query, cos, sin, s.heads);
    key = graph.rope(key, cos, sin, s.kvHeads);
    double scale = 1 / std::sqrt(double(s.headDim));
    Value mixed = graph.attention(
        query, key, value, {shape.batch, s.heads, s.kvHeads, scale, s.attentionDropout, window});
    return project(mixed, ".o_proj", queryWidth, s.width, s.outputBias);
  }

  Value mlp(GraphBuilder &graph, Value x, const std::string &layer) const {
    std::string name = layer + ".mlp";
    auto project = [&](Value input, const Twine &part, int64_t in, int64_t out) {
      return graph.linear(input, {(name + part).str(), in, out, s.deviation, s.mlpBias});
    };
    graph.at(name);
    Value normed = graph.rmsNorm(x, layer + ".post_attention_layernorm", s.epsilon);
    Value gate = project(normed, ".gate_proj", s.width, s.innerWidth);
    Value up = project(normed, ".up_proj", s.width, s.innerWidth);
    Value inner = graph.mul(graph.activation(gate, s.activation), up);
    return project(inner, ".down_proj", s.innerWidth, s.width);
  }

  LlamaSettings s;
};

void checkHeads(ConfigReader &config, const LlamaSettings &s, bool headDimGiven) {
  if (!headDimGiven && s.width % s.heads != 0)
    config.fail("\"hidden_size\" " + Twine(s.width) +
                " is not a multiple of \"num_attention_heads\" " + Twine(s.heads) +
                "; change one of them, or give \"head_dim\"");
  if (s.heads % s.kvHeads != 0)
    config.fail("\"num_attention_heads\" " + Twine(s.heads) +
                " is not a multiple of \"num_key_value_heads\" " + Twine(s.kvHeads) +
                "; change one of them");
  if (s.headDim % 2 != 0)
    config.fail("the head width " + Twine(s.headDim) +
                " is odd, but rotary embedding turns pairs; make \"head_dim\" even");
  if (s.headDim > limits::headDim)
    config.fail("the head width " + Twine(s.headDim) + " is above " + Twine(limits::headDim) +
                "; use more heads");
}

} // namespace

LlamaSettings readLlamaSettings(ConfigReader &config, const LlamaDefaults &defaults,
                                DropoutPolicy dropout) {
  readCommonKeys(config);
  LlamaSettings s{};
  s.vocab = config.integer("vocab_size", defaults.vocab, 1, limits::vocab);
  s.positions = config.integer("max_position_embeddings", defaults.positions, 1, limits::positions);
  s.width = config.integer("hidden_size", 4096, 1, limits::width);
  s.innerWidth = config.integer("intermediate_size", defaults.innerWidth, 1, limits::innerWidth);
  s.layers = config.integer("num_hidden_layers", 32, 1, limits::layers);
  s.heads = config.integer("num_attention_heads", 32, 1, limits::heads);
  s.kvHeads = config.optionalInteger("num_key_value_heads", 1, limits::heads, defaults.kvHeads)
                  .value_or(s.heads);
  std::optional<int64_t> headDim = config.optionalInteger("head_dim", 1, limits::headDim);
  s.headDim = headDim.value_or(s.width / s.heads);
  s.activation = readActivation(config, "hidden_act", "silu");
  s.epsilon = config.number("rms_norm_eps", 1e-6, limits::epsilon, 1);
  s.deviation = config.number("initializer_range", 0.02, 0, 100);
  s.tied = config.boolean("tie_word_embeddings", false);
  s.rope = readRope(config, s.positions);
  s.attentionDropout = readDropout(config, "attention_dropout", 0, dropout);
  checkHeads(config, s, headDim.has_value());
  return s;
}

std::unique_ptr<Model> makeLlama(const LlamaSettings &settings) {
  return std::make_unique<Llama>(settings);
}

std::unique_ptr<Model> readLlama(ConfigReader &config, DropoutPolicy dropout) {
  LlamaSettings s = readLlamaSettings(config, {32000, 11008, 2048, std::nullopt}, dropout);
  config.ignore({"max_sequence_length", "is_llama_config"});
  s.projectionBias = s.outputBias = config.boolean("attention_bias", false);
  s.mlpBias = config.boolean("mlp_bias", false);
  config.accept("pretraining_tp", {"1"});
  config.accept("rope_interleaved", {"false"});
  return makeLlama(s);
}

} // namespace gradc

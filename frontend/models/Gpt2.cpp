// GPT-2: learned positions, norms before each part, Conv1D weights [in, out], head tied to wte.
#include "frontend/models/Model.h"
#include <cmath>

using llvm::Twine;
using mlir::Value;

namespace gradc {
namespace {

struct Gpt2Settings {
  int64_t vocab, positions, width, layers, heads, innerWidth;
  double epsilon, deviation;
  double embeddingDropout, attentionDropout, residualDropout;
  nn::ActivationKind activation;
  bool scaleAttention, tied;
};

class Gpt2 : public Model {
public:
  explicit Gpt2(const Gpt2Settings &settings) : s(settings) {}
  int64_t vocab() const override { return s.vocab; }
  int64_t maxPositions() const override { return s.positions; }
  llvm::StringRef maxPositionsKey() const override { return "n_positions"; }
  llvm::StringRef namePrefix() const override { return "transformer."; }

  Value hidden(GraphBuilder &graph, TokenShape shape) const override {
    graph.at("wte");
    Value x = graph.embedding(graph.tokens(), tokenTable(graph));
    graph.at("wpe");
    Value positionTable = graph.table("transformer.wpe.weight", s.positions, s.width, s.deviation);
    x = graph.dropout(graph.add(x, graph.embedding(graph.positions(), positionTable)),
                      s.embeddingDropout);
    for (int64_t layer = 0; layer < s.layers; ++layer)
      x = block(graph, x, "transformer.h." + std::to_string(layer), shape);
    graph.at("ln_f");
    return graph.layerNorm(x, "transformer.ln_f", s.epsilon);
  }

  Value logits(GraphBuilder &graph, Value hidden) const override {
    graph.at("lm_head");
    if (s.tied)
      return graph.matmulTransposed(hidden, tokenTable(graph));
    return graph.linear(hidden, {"lm_head", s.width, s.vocab, s.deviation});
  }

private:
  Value tokenTable(GraphBuilder &graph) const {
    return graph.table("transformer.wte.weight", s.vocab, s.width, s.deviation);
  }

  Value block(GraphBuilder &graph, Value x, const std::string &name, TokenShape shape) const {
    // Each block adds twice to the residual stream: 2·layers terms, whose sum this keeps in scale.
    double residual = s.deviation / std::sqrt(2.0 * s.layers);
    auto linear = [&](Value input, const Twine &layer, int64_t in, int64_t out, double deviation) {
      return graph.linear(input, {(name + layer).str(), in, out, deviation, /*bias=*/true,
                                  /*outputRows=*/false});
    };
    graph.at(name + ".attn");
    Value normed = graph.layerNorm(x, name + ".ln_1", s.epsilon);
    Value qkv = linear(normed, ".attn.c_attn", s.width, 3 * s.width, s.deviation);
    Value query = graph.slice(qkv, 0, s.width);
    Value key = graph.slice(qkv, s.width, s.width);
    Value value = graph.slice(qkv, 2 * s.width, s.width);
    double scale = s.scaleAttention ? 1 / std::sqrt(double(s.width) / s.heads) : 1;
    Value mixed = graph.attention(query, key, value,
                                  {shape.batch, s.heads, s.heads, scale, s.attentionDropout});
    mixed = linear(mixed, ".attn.c_proj", s.width, s.width, residual);
    x = graph.add(x, graph.dropout(mixed, s.residualDropout));

    graph.at(name + ".mlp");
    normed = graph.layerNorm(x, name + ".ln_2", s.epsilon);
    Value inner = linear(normed, ".mlp.c_fc", s.width, s.innerWidth, s.deviation);
    inner = graph.activation(inner, s.activation);
    inner = linear(inner, ".mlp.c_proj", s.innerWidth, s.width, residual);
    return graph.add(x, graph.dropout(inner, s.residualDropout));
  }

  Gpt2Settings s;
};

} // namespace

std::unique_ptr<Model> readGpt2(ConfigReader &config, DropoutPolicy dropout) {
  readCommonKeys(config);
  config.ignore({"n_ctx", "summary_type", "summary_use_proj", "summary_activation",
                 "summary_proj_to_labels", "summary_first_dropout", "summary_last_dropout",
                 "predict_special_tokens"});
  Gpt2Settings s;
  s.vocab = config.integer("vocab_size", 50257, 1, limits::vocab);
  s.positions = config.integer("n_positions", 1024, 1, limits::positions);
  s.width = config.integer("n_embd", 768, 1, limits::width);
  s.layers = config.integer("n_layer", 12, 1, limits::layers);
  s.heads = config.integer("n_head", 12, 1, limits::heads);
  s.innerWidth = config.optionalInteger("n_inner", 1, limits::innerWidth).value_or(4 * s.width);
  s.activation = readActivation(config, "activation_function", "gelu_new");
  s.epsilon = config.number("layer_norm_epsilon", 1e-5, limits::epsilon, 1);
  s.deviation = config.number("initializer_range", 0.02, 0, 100);
  s.scaleAttention = config.boolean("scale_attn_weights", true);
  s.tied = config.boolean("tie_word_embeddings", true);
  config.accept("scale_attn_by_inverse_layer_idx", {"false"});
  config.accept("reorder_and_upcast_attn", {"false"});
  s.embeddingDropout = readDropout(config, "embd_pdrop", 0.1, dropout);
  s.attentionDropout = readDropout(config, "attn_pdrop", 0.1, dropout);
  s.residualDropout = readDropout(config, "resid_pdrop", 0.1, dropout);
  if (s.width % s.heads != 0)
    config.fail("\"n_embd\" " + Twine(s.width) + " is not a multiple of \"n_head\" " +
                Twine(s.heads) + "; change one of them");
  return std::make_unique<Gpt2>(s);
}

} // namespace gradc

// Qwen2: Llama with biases of query, key and value, and a window in the later layers on request.
#include "frontend/models/Llama.h"

namespace gradc {

/// `layer_types` as transformers writes it for these settings, in JSON.
static std::string layerTypes(const LlamaSettings &s) {
  std::string types;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    bool slides = s.window > 0 && layer >= s.firstWindowLayer;
    types += (layer ? "," : "") + inQuotes(slides ? "sliding_attention" : "full_attention");
  }
  return "[" + types + "]";
}

std::unique_ptr<Model> readQwen2(ConfigReader &config, DropoutPolicy dropout) {
  LlamaSettings s = readLlamaSettings(config, {151936, 22016, 32768, 32}, dropout);
  s.projectionBias = true;
  std::optional<int64_t> window =
      config.optionalInteger("sliding_window", 1, limits::positions, 4096);
  s.window = config.boolean("use_sliding_window", false) ? window.value_or(0) : 0;
  s.firstWindowLayer = config.integer("max_window_layers", 28, 0, limits::layers);
  config.accept("layer_types", {layerTypes(s)});
  config.accept("use_mrope", {"false"});
  return makeLlama(s);
}

} // namespace gradc

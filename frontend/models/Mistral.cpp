// Mistral: Llama whose queries see a window of keys.
#include "frontend/models/Llama.h"

namespace gradc {

std::unique_ptr<Model> readMistral(ConfigReader &config, DropoutPolicy dropout) {
  LlamaSettings s = readLlamaSettings(config, {32000, 14336, 131072, 8}, dropout);
  s.window = config.optionalInteger("sliding_window", 1, limits::positions, 4096).value_or(0);
  return makeLlama(s);
}

} // namespace gradc

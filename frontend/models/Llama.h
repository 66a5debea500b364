// The graph of Llama, and of the families that differ from it in settings alone.
#pragma once

#include "frontend/models/Model.h"
#include "frontend/models/Rope.h"

namespace gradc {

struct LlamaSettings {
  int64_t vocab, positions, width, innerWidth, layers, heads, kvHeads, headDim;
  double epsilon, deviation, attentionDropout;
  nn::ActivationKind activation;
  bool projectionBias; ///< of query, key and value
  bool outputBias;     ///< of attention's output
  bool mlpBias, tied;
  RopeSettings rope;
  int64_t window = 0;           ///< keys that a query sees, itself included; 0: all
  int64_t firstWindowLayer = 0; ///< layers before it see all
};

/// What a key means that is absent, where families differ.
struct LlamaDefaults {
  int64_t vocab, innerWidth, positions;
  std::optional<int64_t> kvHeads; ///< none: as many as heads
};

/// Reads the keys that all of these families have; the other settings are those of Llama without
/// biases and windows.
LlamaSettings readLlamaSettings(ConfigReader &config, const LlamaDefaults &defaults,
                                DropoutPolicy dropout);

std::unique_ptr<Model> makeLlama(const LlamaSettings &settings);

} // namespace gradc

// Rotary position embedding: its settings in config.json, in the spellings of transformers 4
// (`rope_theta`, `rope_scaling`) and 5 (`rope_parameters`), and its tables.
//
// A head's pair of columns (i, i + head_dim/2) at position p is turned by p·f_i, where
// f_i = theta^(-2i/head_dim). `linear` divides all f_i by `factor`. `llama3` divides those whose
// wavelength 2π/f_i is over original/low_freq_factor, keeps those under
// original/high_freq_factor, and between the two interpolates linearly in original/wavelength.
#pragma once

#include "frontend/Config.h"
#include <vector>

namespace gradc {

enum class RopeType { standard, linear, llama3 };

struct RopeSettings {
  RopeType type = RopeType::standard;
  double theta = 10000;
  double factor = 1;
  double lowFrequencyFactor = 1;
  double highFrequencyFactor = 4;
  int64_t originalPositions = 0;

  bool operator==(const RopeSettings &) const = default;
};

/// Reads the three keys; `positions` is what the original length is where it is not given.
RopeSettings readRope(ConfigReader &config, int64_t positions);

/// The head_dim/2 frequencies f_i.
std::vector<double> ropeFrequencies(const RopeSettings &settings, int64_t headDim);

/// [seq, head_dim/2] each, computed in f64.
struct RopeTables {
  std::vector<float> cos;
  std::vector<float> sin;
};
RopeTables ropeTables(const RopeSettings &settings, int64_t headDim, int64_t seq);

} // namespace gradc

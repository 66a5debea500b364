// The dynamic loss scale of fp16: doubled after a stretch of finite steps, halved after one that
// overflowed, whose update the step program has skipped.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradc::rt {

struct LossScaleOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  int64_t interval = 2000; ///< finite steps in a row before it grows
};

struct LossScale {
  static constexpr double least = 1, most = 0x1p24;
  double scale = 65536;
  int64_t finiteSteps = 0; ///< in a row, at this scale

  void note(bool finite, const LossScaleOptions &options) {
    if (!finite) {
      scale = std::max(scale * options.backoff, least);
      finiteSteps = 0;
    } else if (++finiteSteps >= options.interval) {
      scale = std::min(scale * options.growth, most);
      finiteSteps = 0;
    }
  }
};

} // namespace gradc::rt

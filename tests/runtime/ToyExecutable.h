// A hand-made executable, as the compiler would leave it: a linear model of the next byte,
// logits = E[token] H', trained by momentum SGD with accumulation and clipping.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/Abi.h"

namespace gradc::rt {

inline constexpr int64_t toyVocab = 256, toyWidth = 8;
inline constexpr int64_t toyMicroBatch = 2, toySeq = 8, toyAccumulation = 2;

/// Programs train_step, gradients, eval_loss and logits; parameters `wte.weight` and `head.weight`.
const GradcExecutable &toyExecutable();

/// The same with other metadata.
GradcExecutable toyWithMetadata(const std::string &metadata);

/// The metadata of toyExecutable.
const std::string &toyMetadata();

} // namespace gradc::rt

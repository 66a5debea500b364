// The check of flags that are whole numbers.
#pragma once

#include <cstdint>

namespace CLI {
class Validator;
}

namespace gradc::rt {

/// Steps, batches and the like: more would overflow once multiplied by a step's tokens.
inline constexpr uint64_t mostCount = 1'000'000'000'000;

/// Accepts decimal digits whose value is from `least` to `most`. CLI11 itself takes the nearest
/// number that 64 bits hold, and wraps a negative one.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = mostCount);

} // namespace gradc::rt

// How many pieces cover a size, and the size rounded up to whole pieces.
#pragma once

#include <cstdint>

namespace gradc::codegen {

/// x / y rounded up, of x >= 0 and y > 0.
constexpr int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// The least multiple of `unit` that is not below x, of x >= 0 and unit > 0.
constexpr int64_t roundUp(int64_t x, int64_t unit) { return ceilDiv(x, unit) * unit; }

} // namespace gradc::codegen

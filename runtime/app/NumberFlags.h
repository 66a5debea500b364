// Flags that are numbers: which texts they take.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <CLI/CLI.hpp>

namespace gradc::rt {

/// Steps, batches and the like: more would overflow once multiplied by a step's tokens.
inline constexpr uint64_t mostCount = 1'000'000'000'000;

/// Accepts decimal digits whose value is from `least` to `most`. CLI11 itself takes the nearest
/// number that 64 bits hold, and wraps a negative one.
CLI::Validator wholeNumber(uint64_t least, uint64_t most = mostCount);

/// Accepts finite numbers from `least` to `most`. CLI11's own ranges let a NaN through.
CLI::Validator realNumber(double least, double most = std::numeric_limits<double>::max());

/// Accepts numbers from 0 to below 1.
CLI::Validator fraction();

/// A flag whose default is what `value` holds, which the help prints. CLI11 keeps the reference.
template <typename Number>
void addNumber(CLI::App &command, const std::string &flag, Number &value, const std::string &help,
               const CLI::Validator &check) {
  command.add_option(flag, value, help)->capture_default_str()->check(check);
}

} // namespace gradc::rt

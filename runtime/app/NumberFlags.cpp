// See WholeNumber.h.
#include "runtime/app/WholeNumber.h"

#include <charconv>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gradc::rt {

CLI::Validator wholeNumber(uint64_t least, uint64_t most) {
  auto check = [least, most](const std::string &text) -> std::string {
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stopped == end && value >= least && value <= most)
      return {};
    return fmt::format("expected a whole number from {} to {}, got: {}", least, most, text);
  };
  return CLI::Validator(check, fmt::format("{} to {}", least, most));
}

} // namespace gradc::rt

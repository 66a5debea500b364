// See NumberFlags.h.
#include "runtime/app/NumberFlags.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

namespace gradc::rt {
namespace {

/// Nothing where the text is not a finite number and nothing else.
std::optional<double> finiteNumber(const std::string &text) {
  char *end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  bool isWhole = !text.empty() && end == text.c_str() + text.size();
  return isWhole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

} // namespace

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

CLI::Validator realNumber(double least, double most) {
  std::string range = most == std::numeric_limits<double>::max()
                          ? fmt::format("{} or more", least)
                          : fmt::format("{} to {}", least, most);
  auto check = [least, most, range](const std::string &text) -> std::string {
    std::optional<double> value = finiteNumber(text);
    if (value && *value >= least && *value <= most)
      return {};
    return fmt::format("expected a number, {}, got: {}", range, text);
  };
  return CLI::Validator(check, range);
}

CLI::Validator fraction() {
  auto check = [](const std::string &text) -> std::string {
    std::optional<double> value = finiteNumber(text);
    if (value && *value >= 0 && *value < 1)
      return {};
    return fmt::format("expected a number, 0 to below 1, got: {}", text);
  };
  return CLI::Validator(check, "0 to below 1");
}

} // namespace gradc::rt

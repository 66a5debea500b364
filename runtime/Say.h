// Text for people and programs, on standard output or error.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gradc::rt {

/// Prints as fmt::print does, and throws nothing: what could not be written shows in ferror(out).
/// Whoever needs it to be there looks; a run of days does not end for the lines that tell of it.
template <typename... Args>
void say(std::FILE *out, fmt::format_string<Args...> format, Args &&...args) {
  std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

} // namespace gradc::rt

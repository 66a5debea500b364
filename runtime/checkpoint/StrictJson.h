// JSON from files we do not trust. The library's parser keeps the last of two equal keys, reads a
// NUL byte as the end and never limits nesting; this one refuses all three.
#pragma once

#include "runtime/Status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gradc::rt {

/// Parses UTF-8 `text` whole. Errors are the user's and begin with `what`, e.g. the file's path.
Expected<nlohmann::json> parseStrictJson(std::string_view text, std::string_view what);

/// `text` as a JSON string literal, shortened when long: safe to print in one line of an error.
std::string printable(std::string_view text);

} // namespace gradc::rt

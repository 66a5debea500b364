// Two passes: a SAX walk that refuses what the library would let through, then the library itself.
#include "runtime/checkpoint/StrictJson.h"

#include <fmt/format.h>
#include <unordered_set>
#include <vector>

namespace gradc::rt {

using nlohmann::json;

namespace {

constexpr size_t maxDepth = 64;

/// Walks the text without building a value and remembers the first thing wrong with it.
class Checker : public nlohmann::json_sax<json> {
public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }

  bool key(string_t &name) override {
    if (keys_.back().insert(name).second)
      return true;
    problem = fmt::format("key {} appears twice", printable(name));
    return false;
  }

  bool parse_error(size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    problem = fmt::format("not valid JSON at byte {}", position);
    return false;
  }

private:
  bool enter() {
    keys_.emplace_back();
    if (keys_.size() <= maxDepth)
      return true;
    problem = fmt::format("JSON is nested deeper than {} levels", maxDepth);
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::unordered_set<std::string>> keys_; ///< of the objects and arrays now open
};

} // namespace

Expected<json> parseStrictJson(std::string_view text, std::string_view what) {
  if (size_t nul = text.find('\0'); nul != std::string_view::npos)
    return Status::user(fmt::format("{}: not valid JSON at byte {}: a NUL byte", what, nul));
  Checker checker;
  if (!json::sax_parse(text.begin(), text.end(), &checker))
    return Status::user(fmt::format("{}: {}", what, checker.problem));
  json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return Status::user(fmt::format("{}: not valid JSON", what));
  return value;
}

std::string printable(std::string_view text) {
  constexpr size_t longest = 160;
  std::string shown(text.substr(0, longest));
  if (text.size() > longest)
    shown += "...";
  return json(std::move(shown)).dump(-1, ' ', true, json::error_handler_t::replace);
}

} // namespace gradc::rt

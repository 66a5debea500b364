// Reading config.json: files, the parser's checks, and the accounting of keys.
#include "frontend/Config.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

using llvm::StringRef;
using llvm::Twine;
using nlohmann::json;

namespace gradc {

llvm::Error inputError(const Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

static std::string shortText(const json &value) {
  constexpr size_t limit = 60;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  return text.size() <= limit ? text : text.substr(0, limit) + "...";
}

std::string inQuotes(StringRef text) { return shortText(json(text.str())); }

llvm::Expected<std::string> readTextFile(StringRef path) {
  constexpr uint64_t limit = uint64_t(64) << 20;
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(path, status))
    return inputError(path + ": cannot be read: " + error.message());
  if (status.type() != llvm::sys::fs::file_type::regular_file)
    return inputError(path + ": is not a file");
  if (status.getSize() > limit)
    return inputError(path + ": is " + Twine(status.getSize()) +
                      " bytes long, which no model definition is; pass a config.json or an .mlir "
                      "module");
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return inputError(path + ": cannot be read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

namespace {
/// What the library's parser lets pass: equal keys, deep nesting. Also notes where it gave up.
class JsonCheck : public json::json_sax_t {
public:
  std::string problem;
  size_t position = 0;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool start_array(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t &text) override {
    if (keys.back().insert(text).second)
      return true;
    problem = "has the key " + inQuotes(text) + " twice; keep one";
    return false;
  }
  bool parse_error(size_t at, const std::string &, const json::exception &) override {
    position = at;
    return false;
  }

private:
  bool enter() {
    keys.emplace_back();
    if (keys.size() <= 64)
      return true;
    problem = "is nested more than 64 levels deep, which no config.json is";
    return false;
  }
  bool leave() {
    keys.pop_back();
    return true;
  }
  std::vector<std::set<std::string>> keys;
};
} // namespace

llvm::Expected<ConfigFile> ConfigFile::parse(StringRef text, StringRef path) {
  if (text.trim().empty())
    return inputError(path + ": is empty; expected a config.json");
  JsonCheck check;
  size_t nul = text.find('\0'); // the parser would take it for the end
  if (nul != StringRef::npos || !json::sax_parse(text.begin(), text.end(), &check)) {
    if (!check.problem.empty())
      return inputError(path + ": " + check.problem);
    size_t at = nul != StringRef::npos ? nul : check.position;
    size_t line = 1 + text.take_front(at).count('\n');
    return inputError(path + ": is not JSON, or cut short, at line " + Twine(line));
  }
  json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    return inputError(path + ": holds no JSON object; expected a config.json");
  return ConfigFile{path.str(), text.str(), std::make_shared<const json>(std::move(root))};
}

ConfigReader::ConfigReader(const ConfigFile &file, StringRef subject)
    : object(file.root.get()), state(std::make_shared<State>()) {
  state->path = file.path;
  state->subject = subject.str();
}

ConfigReader::ConfigReader(const json &object, std::shared_ptr<State> state, std::string prefix)
    : object(&object), state(std::move(state)), prefix(std::move(prefix)) {}

std::string ConfigReader::name(StringRef key) const { return inQuotes(prefix + key.str()); }

void ConfigReader::fail(const Twine &message) {
  if (!state->error)
    state->error = (state->path + ": " + message).str();
}

const json *ConfigReader::take(StringRef key) {
  known.push_back(key.str());
  auto found = object->find(key.str());
  return found == object->end() || failed() ? nullptr : &*found;
}

void ConfigReader::wrongValue(StringRef key, const Twine &expected, const json &got) {
  fail(name(key) + " must be " + expected + ", got: " + shortText(got));
}

int64_t ConfigReader::integer(StringRef key, int64_t fallback, int64_t low, int64_t high) {
  const json *value = take(key);
  return value ? integerOf(*value, key, fallback, low, high) : fallback;
}

int64_t ConfigReader::integerOf(const json &value, StringRef key, int64_t fallback, int64_t low,
                                int64_t high) {
  // A number past int64 is stored unsigned and would wrap.
  bool wraps = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX);
  if (value.is_number_integer() && !wraps && value.get<int64_t>() >= low &&
      value.get<int64_t>() <= high)
    return value.get<int64_t>();
  wrongValue(key, "an integer from " + Twine(low) + " to " + Twine(high), value);
  return fallback;
}

std::optional<int64_t> ConfigReader::soleInteger(StringRef key, int64_t low, int64_t high) {
  const json *value = take(key);
  if (!value || value->is_null())
    return std::nullopt;
  bool isList = value->is_array() && value->size() == 1;
  return integerOf(isList ? value->front() : *value, key, low, low, high);
}

std::optional<int64_t> ConfigReader::optionalInteger(StringRef key, int64_t low, int64_t high,
                                                     std::optional<int64_t> fallback) {
  if (has(key))
    return integer(key, low, low, high);
  known.push_back(key.str());
  return object->contains(key.str()) ? std::nullopt : fallback;
}

double ConfigReader::number(StringRef key, double fallback, double low, double high,
                            bool nullable) {
  const json *value = take(key);
  if (!value || (nullable && value->is_null()))
    return fallback;
  double number = value->is_number() ? value->get<double>() : NAN;
  if (number >= low && number <= high)
    return number;
  wrongValue(key, "a number from " + shortText(low) + " to " + shortText(high), *value);
  return fallback;
}

double ConfigReader::required(StringRef key, double low, double high) {
  if (!has(key))
    fail("key " + name(key) + " is missing; add it");
  return number(key, low, low, high);
}

bool ConfigReader::boolean(StringRef key, bool fallback) {
  const json *value = take(key);
  if (!value)
    return fallback;
  if (value->is_boolean())
    return value->get<bool>();
  wrongValue(key, "true or false", *value);
  return fallback;
}

std::string ConfigReader::string(StringRef key, StringRef fallback) {
  const json *value = take(key);
  if (!value)
    return fallback.str();
  if (value->is_string())
    return value->get<std::string>();
  wrongValue(key, "a string", *value);
  return fallback.str();
}

std::optional<ConfigReader> ConfigReader::section(StringRef key) {
  const json *value = take(key);
  if (!value || value->is_null())
    return std::nullopt;
  if (value->is_object())
    return ConfigReader(*value, state, prefix + key.str() + ".");
  wrongValue(key, "an object or null", *value);
  return std::nullopt;
}

bool ConfigReader::has(StringRef key) const {
  auto found = object->find(key.str());
  return found != object->end() && !found->is_null();
}

void ConfigReader::accept(StringRef key, llvm::ArrayRef<StringRef> values) {
  const json *value = take(key);
  if (value && !value->is_null() && !llvm::is_contained(values, StringRef(value->dump())))
    refuse(key, "is not implemented; set it to " + values.front());
}

void ConfigReader::ignore(llvm::ArrayRef<StringRef> keys) {
  for (StringRef key : keys)
    known.push_back(key.str());
}

void ConfigReader::refuse(StringRef key, const Twine &reason) {
  auto found = object->find(key.str());
  std::string value = found == object->end() ? "absent" : shortText(*found);
  fail(name(key) + ": " + value + " " + reason);
}

void ConfigReader::refuseUnknown() {
  for (const auto &[key, value] : object->items()) {
    if (llvm::is_contained(known, key))
      continue;
    StringRef nearest;
    unsigned best = 3; // two edits at most
    for (StringRef candidate : known) {
      unsigned distance = candidate.edit_distance(key, /*AllowReplacements=*/true, best);
      if (distance < best && distance < candidate.size() / 2) {
        best = distance;
        nearest = candidate;
      }
    }
    std::string mend = nearest.empty() ? "remove it if it does not change the model"
                                       : "did you mean " + name(nearest) + "?";
    fail("key " + name(key) + " is not known for " + state->subject + "; " + mend);
    return;
  }
}

llvm::Error ConfigReader::error() const {
  return state->error ? inputError(*state->error) : llvm::Error::success();
}

llvm::Error ConfigReader::finish() {
  refuseUnknown();
  return error();
}

} // namespace gradc

// config.json as we read it: a family's reader asks for every key that it knows, and what nobody
// asked for is refused by name, so that no setting is ever dropped silently.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace gradc {

/// An error in the user's input: one line that says what, where and the mend (exit code 1).
llvm::Error inputError(const llvm::Twine &message);

/// `text` quoted, escaped and shortened so that it fits in one line of an error.
std::string inQuotes(llvm::StringRef text);

/// The bytes of a file of at most 64 MiB.
llvm::Expected<std::string> readTextFile(llvm::StringRef path);

/// A JSON object and the text it was read from. Copies share the parsed value.
struct ConfigFile {
  std::string path; ///< begins every error
  std::string text;
  std::shared_ptr<const nlohmann::json> root;

  /// Refuses what is not one JSON object: with its line where it is not JSON, equal keys, nesting
  /// past 64 levels.
  static llvm::Expected<ConfigFile> parse(llvm::StringRef text, llvm::StringRef path);
};

/// Reads the keys of one JSON object. The first error sticks and every later call returns its
/// fallback, so that a family is read straight through and asks once, at the end, by `finish`.
/// The ConfigFile must outlive the reader.
class ConfigReader {
public:
  /// `subject` is what an unknown key is not known for, e.g. "model_type gpt2".
  ConfigReader(const ConfigFile &file, llvm::StringRef subject);

  /// An integer in [low, high]; `fallback` where the key is absent.
  int64_t integer(llvm::StringRef key, int64_t fallback, int64_t low, int64_t high);
  /// The same for a key that may be null: nothing where it is null, `fallback` where it is absent.
  std::optional<int64_t> optionalInteger(llvm::StringRef key, int64_t low, int64_t high,
                                         std::optional<int64_t> fallback = std::nullopt);
  /// The same for a key that may also be a list of one: nothing where it is null or absent.
  std::optional<int64_t> soleInteger(llvm::StringRef key, int64_t low, int64_t high);
  /// A finite number in [low, high]; `fallback` where the key is absent, or null where that is
  /// allowed.
  double number(llvm::StringRef key, double fallback, double low, double high,
                bool nullable = false);
  /// A number in [low, high] that has no default.
  double required(llvm::StringRef key, double low, double high);
  bool boolean(llvm::StringRef key, bool fallback);
  std::string string(llvm::StringRef key, llvm::StringRef fallback);
  /// A reader of the object under `key`; nothing where it is null, absent or not an object, which
  /// is an error. Its errors are this reader's; it must be closed by `refuseUnknown`.
  std::optional<ConfigReader> section(llvm::StringRef key);

  /// True where the key is there and not null. Does not count as reading it.
  bool has(llvm::StringRef key) const;
  /// Accepts a key that is absent, null, or has one of these values (JSON texts, the first named in
  /// the error); any other value is not implemented.
  void accept(llvm::StringRef key, llvm::ArrayRef<llvm::StringRef> values);
  /// Keys that do not change the model.
  void ignore(llvm::ArrayRef<llvm::StringRef> keys);
  /// Refuses the value of `key` as read, for this reason, e.g. `is not implemented; use silu`.
  void refuse(llvm::StringRef key, const llvm::Twine &reason);
  /// Reports an error about several keys.
  void fail(const llvm::Twine &message);
  /// Reports the first key that was neither read nor ignored.
  void refuseUnknown();

  bool failed() const { return state->error.has_value(); }
  /// The first error, or success.
  llvm::Error error() const;
  /// refuseUnknown, then error. Call once, on the outermost reader.
  llvm::Error finish();

private:
  struct State {
    std::string path;
    std::string subject;
    std::optional<std::string> error;
  };
  ConfigReader(const nlohmann::json &object, std::shared_ptr<State> state, std::string prefix);
  const nlohmann::json *take(llvm::StringRef key);
  int64_t integerOf(const nlohmann::json &value, llvm::StringRef key, int64_t fallback, int64_t low,
                    int64_t high);
  void wrongValue(llvm::StringRef key, const llvm::Twine &expected, const nlohmann::json &got);
  std::string name(llvm::StringRef key) const;

  const nlohmann::json *object;
  std::shared_ptr<State> state; ///< one for a reader and its sections
  std::string prefix;           ///< e.g. "rope_scaling."
  std::vector<std::string> known;
};

} // namespace gradc

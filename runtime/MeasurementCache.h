// What was measured on a machine, kept in a file of the user's from run to run:
//
//     {"what measurements depend on": {"what was measured": …}}
//
// Entries of other machines and versions stay as they are. A file that holds something else counts
// as empty, and is replaced; what is no regular file, cannot be read or is larger than any cache
// counts as empty and stays as it is.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/Status.h"

namespace gradc::rt {

class MeasurementCache {
public:
  /// The file `name` in `folder`, which is made when it is first written; an empty folder: none can
  /// be named, so that nothing is kept. `machine` is all that a measurement depends on beside its
  /// key.
  MeasurementCache(const std::string &folder, const std::string &name, std::string machine);

  /// $GRADC_CACHE_DIR, else gradc in $XDG_CACHE_HOME or ~/.cache; empty without a home.
  static std::string defaultFolder();

  /// What was measured, as it was added: a file may hold anything, so the caller checks it.
  std::optional<nlohmann::json> find(const std::string &key) const;
  void add(const std::string &key, nlohmann::json value);

  /// Joins what was added to what the file holds by now, and replaces the file as a whole: another
  /// process sees the old or the new one. Does nothing where nothing was added. A machine status
  /// says why nothing is kept.
  Status save() const;

  /// The file; empty without a folder.
  const std::string &path() const { return file_; }

private:
  std::string file_, machine_;
  std::map<std::string, nlohmann::json> known_, added_;
};

} // namespace gradc::rt

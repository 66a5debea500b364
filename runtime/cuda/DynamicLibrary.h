// A shared library that is looked for where an executable runs, and never linked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/Status.h"

namespace gradc::rt {

/// Once loaded it stays so: libraries with threads of their own are not unloaded in safety.
class DynamicLibrary {
public:
  /// The first of `names` (files, or sonames as the loader finds them) that loads; $variable, where
  /// it is set, is the only one tried. A machine status lists what the loader said of each, and
  /// ends with mendOf(variable, mend).
  static Expected<DynamicLibrary> open(const std::vector<std::string> &names, const char *variable,
                                       const std::string &mend);

  /// What to do about a library that is missing or wrong: `mend`, unless $variable names it.
  static std::string mendOf(const char *variable, const std::string &mend);

  /// Null when there is none of the name.
  void *find(const char *symbol) const;
  /// What it was loaded as.
  const std::string &name() const { return name_; }

private:
  DynamicLibrary(void *handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  void *handle_;
  std::string name_;
};

} // namespace gradc::rt

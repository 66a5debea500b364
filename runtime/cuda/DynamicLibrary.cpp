// See DynamicLibrary.h.
#include "runtime/cuda/DynamicLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace gradc::rt {

/// What the variable names; empty where it is not set.
static std::string chosenBy(const char *variable) {
  const char *name = std::getenv(variable);
  return name ? name : "";
}

std::string DynamicLibrary::mendOf(const char *variable, const std::string &mend) {
  return chosenBy(variable).empty()
             ? mend
             : fmt::format("check {}, which names it, or unset it", variable);
}

Expected<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string> &names,
                                              const char *variable, const std::string &mend) {
  std::string chosen = chosenBy(variable);
  std::string failures;
  for (const std::string &name : chosen.empty() ? names : std::vector<std::string>{chosen}) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return DynamicLibrary(handle, name);
    failures += fmt::format("{}{}", failures.empty() ? "" : "; ", dlerror());
  }
  return Status::machine(fmt::format("{}: {}", failures, mendOf(variable, mend)));
}

void *DynamicLibrary::find(const char *symbol) const { return dlsym(handle_, symbol); }

} // namespace gradc::rt

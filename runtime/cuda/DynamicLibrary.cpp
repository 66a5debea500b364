// See DynamicLibrary.h.
#include "runtime/cuda/DynamicLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace gradc::rt {

Expected<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string> &names,
                                              const char *variable, const std::string &mend) {
  const char *chosen = std::getenv(variable);
  std::string failures;
  for (const std::string &name : chosen && *chosen ? std::vector<std::string>{chosen} : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return DynamicLibrary(handle, name);
    failures += fmt::format("{}{}", failures.empty() ? "" : "; ", dlerror());
  }
  return Status::machine(fmt::format("{}: {}", failures, mend));
}

void *DynamicLibrary::find(const char *symbol) const { return dlsym(handle_, symbol); }

} // namespace gradc::rt

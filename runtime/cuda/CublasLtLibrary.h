// cuBLASLt as it is found where an executable runs: never linked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/Status.h"
#include "runtime/cuda/CublasLtApi.h"
#include "runtime/cuda/DynamicLibrary.h"

namespace gradc::rt {

namespace cublaslt {
/// The library's functions, by their names without "cublasLt".
struct Functions {
#define GRADC_CUBLASLT_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  GRADC_CUBLASLT_FUNCTIONS(GRADC_CUBLASLT_MEMBER)
#undef GRADC_CUBLASLT_MEMBER
};
} // namespace cublaslt

/// The loaded library.
class CublasLtLibrary {
public:
  /// The names of the versions that are known to do, the newest first.
  static std::vector<std::string> names();
  /// $GRADC_CUBLASLT_PATH, a file, where it is set; else the first of `names` that the loader
  /// finds. A machine status says what was tried and what to install.
  static Expected<std::unique_ptr<CublasLtLibrary>>
  open(const std::vector<std::string> &names = CublasLtLibrary::names());
  CublasLtLibrary(const CublasLtLibrary &) = delete;
  CublasLtLibrary &operator=(const CublasLtLibrary &) = delete;

  const cublaslt::Functions &functions() const { return functions_; }

  /// "13.1.0": major, minor and patch.
  std::string version() const;

  /// Success, or a machine status that names the call, and what went wrong by the library's own
  /// name.
  Status check(cublaslt::Result result, const char *call) const;

private:
  CublasLtLibrary() = default;
  Status resolve(const DynamicLibrary &library);

  cublaslt::Functions functions_;
};

} // namespace gradc::rt

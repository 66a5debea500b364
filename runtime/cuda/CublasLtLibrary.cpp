// See CublasLtLibrary.h.
#include "runtime/cuda/CublasLtLibrary.h"

#include <cstdlib>
#include <type_traits>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>

namespace gradc::rt {
namespace {

constexpr const char *pathVariable = "GRADC_CUBLASLT_PATH";

std::vector<std::string> candidates() {
  if (const char *path = std::getenv(pathVariable); path && *path)
    return {path};
  return {"libcublasLt.so.13", "libcublasLt.so.12"};
}

} // namespace

Expected<std::unique_ptr<CublasLtLibrary>> CublasLtLibrary::open() {
  std::unique_ptr<CublasLtLibrary> library(new CublasLtLibrary);
  std::string failures;
  for (const std::string &file : candidates()) {
    library->library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library->library_) {
      GRADC_RETURN_IF_ERROR(library->resolve(file));
      return library;
    }
    failures += fmt::format("{}{}", failures.empty() ? "" : "; ", dlerror());
  }
  return Status::machine(fmt::format(
      "cuBLASLt cannot be loaded ({}); install CUDA's libcublas, or set {} to its libcublasLt.so",
      failures, pathVariable));
}

CublasLtLibrary::~CublasLtLibrary() {
  if (library_)
    dlclose(library_);
}

Status CublasLtLibrary::resolve(const std::string &file) {
  const char *missing = nullptr;
  auto find = [&](const char *name, auto *&function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library_, name));
    if (!function && !missing)
      missing = name;
  };
#define GRADC_CUBLASLT_FIND(name, result, parameters) find("cublasLt" #name, functions_.name);
  GRADC_CUBLASLT_FUNCTIONS(GRADC_CUBLASLT_FIND)
#undef GRADC_CUBLASLT_FIND
  if (!missing)
    return {};
  return Status::machine(
      fmt::format("{} has no function {}: it is not cuBLASLt 12 or later; set {} "
                  "to one that is",
                  file, missing, pathVariable));
}

std::string CublasLtLibrary::version() const {
  size_t number = functions_.GetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Status CublasLtLibrary::check(cublaslt::Result status, const char *call,
                              const std::string &product) const {
  if (status == cublaslt::statusSuccess)
    return {};
  return Status::machine(fmt::format("product {}: {} failed: {} (cuBLASLt {})", product, call,
                                     functions_.GetStatusName(status), version()));
}

} // namespace gradc::rt

// See CublasLtLibrary.h.
#include "runtime/cuda/CublasLtLibrary.h"

#include <type_traits>

#include <fmt/format.h>

namespace gradc::rt {

static constexpr const char *pathVariable = "GRADC_CUBLASLT_PATH";

std::vector<std::string> CublasLtLibrary::names() {
  return {"libcublasLt.so.13", "libcublasLt.so.12"};
}

Expected<std::unique_ptr<CublasLtLibrary>>
CublasLtLibrary::open(const std::vector<std::string> &names) {
  auto library = DynamicLibrary::open(
      names, pathVariable,
      fmt::format("install CUDA's libcublas, or set {} to its libcublasLt.so", pathVariable));
  if (!library.ok())
    return library.status().during("cuBLASLt cannot be loaded");
  std::unique_ptr<CublasLtLibrary> opened(new CublasLtLibrary);
  GRADC_RETURN_IF_ERROR(opened->resolve(*library));
  return opened;
}

Status CublasLtLibrary::resolve(const DynamicLibrary &library) {
  const char *missing = nullptr;
  auto find = [&](const char *name, auto *&function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
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
                  library.name(), missing, pathVariable));
}

std::string CublasLtLibrary::version() const {
  size_t number = functions_.GetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Status CublasLtLibrary::check(cublaslt::Result result, const char *call) const {
  if (result == cublaslt::statusSuccess)
    return {};
  return Status::machine(fmt::format("{} failed: {} (cuBLASLt {})", call,
                                     functions_.GetStatusName(result), version()));
}

} // namespace gradc::rt

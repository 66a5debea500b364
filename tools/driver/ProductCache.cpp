// See ProductCache.h.
#include "tools/driver/ProductCache.h"

#include <cmath>

using nlohmann::json;

namespace gradc {

static std::optional<double> positiveNumber(const json &object, const char *key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number())
    return std::nullopt;
  double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<ProductSeconds> ProductCache::find(const std::string &product) const {
  std::optional<json> entry = cache.find(product);
  if (!entry || !entry->is_object())
    return std::nullopt;
  auto generated = positiveNumber(*entry, "generated"), library = positiveNumber(*entry, "library");
  if (!generated || !library)
    return std::nullopt;
  return ProductSeconds{*generated, *library};
}

void ProductCache::add(const std::string &product, ProductSeconds seconds) {
  cache.add(product, {{"generated", seconds.generated}, {"library", seconds.library}});
}

llvm::Error ProductCache::save() const {
  rt::Status status = cache.save();
  return status.ok() ? llvm::Error::success() : llvm::createStringError(status.message());
}

} // namespace gradc

// Measured times of matrix products, kept from compile to compile in one file:
//
//     {"gradc 0.1.0, oneDNN 2.6.3, znver3, 2 of 2 threads, +avx2,…":
//        {"256 x 768 x 768": {"generated": 0.0021, "library": 0.0024}}}
//
// Times that are none count as not there, and are replaced.
#pragma once

#include "runtime/MeasurementCache.h"
#include "tools/driver/ProductTimer.h"

#include <optional>
#include <string>

namespace gradc {

class ProductCache {
public:
  /// products.json in `folder`; see MeasurementCache. `machine` is all that times depend on beside
  /// the product.
  ProductCache(const std::string &folder, std::string machine)
      : cache(folder, "products.json", std::move(machine)) {}

  std::optional<ProductSeconds> find(const std::string &product) const;
  void add(const std::string &product, ProductSeconds seconds);

  llvm::Error save() const;

  /// The file; empty without a folder.
  const std::string &path() const { return cache.path(); }

private:
  rt::MeasurementCache cache;
};

} // namespace gradc

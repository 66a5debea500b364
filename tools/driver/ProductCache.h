// Measured times of matrix products, kept from compile to compile in one file:
//
//     {"gradc 0.1.0, oneDNN 2.6.3, znver3, 2 of 2 threads, +avx2,…":
//        {"256 x 768 x 768": {"generated": 0.0021, "library": 0.0024}}}
//
// Times of other machines and versions stay as they are. A file that cannot be read, and times that
// are none, count as not there, and are replaced.
#pragma once

#include "tools/driver/ProductTimer.h"

#include <map>
#include <optional>
#include <string>

namespace gradc {

class ProductCache {
public:
  /// The folder of the file, made when it is first written; empty: none can be named, so that
  /// nothing is kept. `machine` is all that times depend on beside the product.
  ProductCache(const std::string &folder, std::string machine);

  /// $GRADC_CACHE_DIR, else gradc in $XDG_CACHE_HOME or ~/.cache; empty without a home.
  static std::string defaultFolder();

  std::optional<ProductSeconds> find(const std::string &product) const;
  void add(const std::string &product, ProductSeconds seconds);

  /// Joins what was added to what the file holds by now, and replaces the file as a whole: another
  /// compile sees the old or the new one. Does nothing where nothing was added.
  llvm::Error save() const;

  /// The file; empty without a folder.
  const std::string &path() const { return file; }

private:
  std::string file, machine;
  std::map<std::string, ProductSeconds> known, added;
};

} // namespace gradc

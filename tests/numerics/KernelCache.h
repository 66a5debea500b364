// Kernels that are compiled once a process: many cases give one kernel other data.
#pragma once

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace gradc::codegen {

template <typename Kernel> class KernelCache {
public:
  /// What `compile`, called for the first of equal texts, gave as an optional; null where it gave
  /// nothing. `text` is all that the compiled code follows from.
  template <typename Compile>
  std::shared_ptr<const Kernel> get(const std::string &text, Compile compile) {
    std::shared_ptr<const Kernel> &known =
        kernels[llvm::SHA256::hash(llvm::arrayRefFromStringRef(text))];
    if (!known)
      if (std::optional<Kernel> compiled = compile())
        known = std::make_shared<const Kernel>(std::move(*compiled));
    return known;
  }

private:
  std::map<std::array<uint8_t, 32>, std::shared_ptr<const Kernel>> kernels;
};

} // namespace gradc::codegen

// --gemm auto: each matrix product is made by our kernel or by the library, whichever is faster on
// this machine.
#pragma once

#include "codegen/cpu/ProductTimes.h"
#include "tools/driver/ProductCache.h"

#include "llvm/ADT/MapVector.h"

#include <functional>
#include <string>
#include <vector>

namespace gradc {

/// "256 x 768 x 3072, batch 12, A transposed, accumulates": rows, columns and depth of a product of
/// contiguous matrices of f32, and all else that tells it from others.
std::string describeProduct(const codegen::GemmSpec &spec);

/// Looks each product up in the cache or has it timed, once.
class ProductChoice final : public codegen::ProductTimes {
public:
  using Timer = std::function<llvm::Expected<ProductSeconds>(const codegen::GemmSpec &)>;

  ProductChoice(Timer timer, ProductCache cache)
      : timer(std::move(timer)), cache(std::move(cache)) {}

  /// Times on as many threads as products are cut for, where this process has that many, and keeps
  /// the times in the user's cache.
  static ProductChoice onThisMachine(const codegen::CpuTarget &target);

  /// Ours unless the library takes less by more than 2 %, and where neither can be timed.
  bool prefersGenerated(const codegen::GemmSpec &spec) override;

  /// Writes what was measured to the cache. An error changes nothing but the next compile's time.
  llvm::Error save() const { return cache.save(); }

  /// "12 shapes: 11 generated, 1 library (9 measured now, 3 from FILE)", of all that was asked.
  std::string summary() const;

  /// Each shape's choice and both times, in the order of asking.
  std::vector<std::string> lines() const;

  /// Why products could not be timed: of the first such; empty where all could.
  const std::string &failure() const { return firstFailure; }

private:
  struct Entry {
    std::optional<ProductSeconds> seconds; ///< none where they could not be had
    bool generated = true, cached = false;
  };
  Entry choose(const std::string &product, const codegen::GemmSpec &spec);

  Timer timer;
  ProductCache cache;
  llvm::MapVector<std::string, Entry, std::map<std::string, unsigned>> entries;
  std::string firstFailure;
};

} // namespace gradc

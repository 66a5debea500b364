// See ProductChoice.h.
#include "tools/driver/ProductChoice.h"
#include "runtime/cpu/Gemm.h"
#include "runtime/cpu/ThreadPool.h"
#include "tools/driver/Failure.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace gradc {
namespace {

/// What the library has to be better by: less is within the noise, and only our kernels give the
/// same bits on every machine of a kind.
constexpr double margin = 1.02;

const char *nameOf(bool generated) { return generated ? "generated" : "library"; }

std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

} // namespace

std::string describeProduct(const codegen::GemmSpec &spec) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << spec.m << " x " << spec.n << " x " << spec.k;
  if (spec.batch > 1)
    out << ", batch " << spec.batch;
  if (spec.a.columnStride != 1)
    out << ", A transposed";
  if (spec.b.columnStride != 1)
    out << ", B transposed";
  if (spec.accumulate)
    out << ", accumulates";
  return text;
}

ProductChoice ProductChoice::onThisMachine(const codegen::CpuTarget &target) {
  auto threads = static_cast<int>(
      std::min<int64_t>(target.threads, static_cast<int64_t>(rt::availableProcessors())));
  std::string machine = "gradc " GRADC_VERSION ", oneDNN " + rt::gemmLibraryVersion() + ", " +
                        target.cpu + ", " + std::to_string(threads) + " of " +
                        std::to_string(target.threads) + " threads, " + target.features;
  Timer timer = [target, threads](const codegen::GemmSpec &spec) {
    return timeProduct(spec, target, threads);
  };
  return {std::move(timer),
          ProductCache(rt::MeasurementCache::defaultFolder(), std::move(machine))};
}

bool ProductChoice::prefersGenerated(const codegen::GemmSpec &spec) {
  std::string product = describeProduct(spec);
  auto found = entries.find(product);
  if (found == entries.end())
    found = entries.insert({product, choose(product, spec)}).first;
  return found->second.generated;
}

ProductChoice::Entry ProductChoice::choose(const std::string &product,
                                           const codegen::GemmSpec &spec) {
  Entry entry;
  entry.seconds = cache.find(product);
  entry.cached = entry.seconds.has_value();
  if (!entry.cached) {
    llvm::Expected<ProductSeconds> timed = timer(spec);
    if (!timed) {
      std::string why = oneLine(timed.takeError());
      if (firstFailure.empty())
        firstFailure = "product " + product + " is generated, as it cannot be timed: " + why;
      return entry;
    }
    entry.seconds = *timed;
    cache.add(product, *timed);
  }
  entry.generated = entry.seconds->generated <= entry.seconds->library * margin;
  return entry;
}

std::string ProductChoice::summary() const {
  if (entries.empty())
    return lines().front();
  auto count = [&](llvm::function_ref<bool(const Entry &)> holds) {
    return llvm::count_if(entries, [&](const auto &each) { return holds(each.second); });
  };
  auto generated = count([](const Entry &entry) { return entry.generated; });
  auto cached = count([](const Entry &entry) { return entry.cached; });
  auto measured = count([](const Entry &entry) { return entry.seconds && !entry.cached; });
  auto all = static_cast<int64_t>(entries.size());
  std::string text;
  llvm::raw_string_ostream out(text);
  out << all << (all == 1 ? " shape: " : " shapes: ") << generated << " generated, "
      << all - generated << " library (" << measured << " measured now, " << cached << " from "
      << (cache.path().empty() ? "no cache" : cache.path());
  if (all > measured + cached)
    out << ", " << all - measured - cached << " not measured";
  out << ")";
  return text;
}

std::vector<std::string> ProductChoice::lines() const {
  if (entries.empty())
    return {"none that the library could make: all are generated"};
  std::vector<std::string> all;
  for (const auto &[product, entry] : entries) {
    std::string times = "not measured";
    if (entry.seconds)
      times = "generated " + milliseconds(entry.seconds->generated) + ", library " +
              milliseconds(entry.seconds->library);
    all.push_back(product + ": " + nameOf(entry.generated) + " (" + times + ")");
  }
  return all;
}

} // namespace gradc

// See ProductCache.h.
#include "tools/driver/ProductCache.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>

using nlohmann::json;

namespace gradc {
namespace {

/// The file's object; an empty one where it holds none.
json readObject(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return json::object();
  llvm::StringRef text = (*buffer)->getBuffer();
  json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  return root.is_object() ? root : json::object();
}

std::optional<double> positiveNumber(const json &object, const char *key) {
  auto found = object.find(key);
  if (found == object.end() || !found->is_number())
    return std::nullopt;
  double value = found->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<ProductSeconds> secondsOf(const json &entry) {
  if (!entry.is_object())
    return std::nullopt;
  auto generated = positiveNumber(entry, "generated"), library = positiveNumber(entry, "library");
  if (!generated || !library)
    return std::nullopt;
  return ProductSeconds{*generated, *library};
}

/// Written beside the file and renamed onto it.
llvm::Error replaceFile(const std::string &path, const std::string &text) {
  auto temporary = llvm::sys::fs::TempFile::create(path + ".%%%%%%%%");
  if (!temporary)
    return temporary.takeError();
  llvm::raw_fd_ostream stream(temporary->FD, /*shouldClose=*/false);
  stream << text;
  stream.flush();
  if (std::error_code error = stream.error()) {
    stream.clear_error(); // else the stream's destructor would abort
    llvm::consumeError(temporary->discard());
    return llvm::errorCodeToError(error);
  }
  return temporary->keep(path);
}

llvm::Error makeFolderOf(const std::string &path) {
  return llvm::errorCodeToError(
      llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path)));
}

} // namespace

ProductCache::ProductCache(const std::string &folder, std::string machine)
    : machine(std::move(machine)) {
  if (folder.empty())
    return;
  file = folder + "/products.json";
  json root = readObject(file);
  auto products = root.find(this->machine);
  if (products == root.end() || !products->is_object())
    return;
  for (const auto &[product, entry] : products->items())
    if (std::optional<ProductSeconds> seconds = secondsOf(entry))
      known.emplace(product, *seconds);
}

std::string ProductCache::defaultFolder() {
  if (const char *folder = std::getenv("GRADC_CACHE_DIR"); folder && *folder)
    return folder;
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    return "";
  llvm::sys::path::append(path, "gradc");
  return path.str().str();
}

std::optional<ProductSeconds> ProductCache::find(const std::string &product) const {
  auto found = known.find(product);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

void ProductCache::add(const std::string &product, ProductSeconds seconds) {
  known[product] = added[product] = seconds;
}

llvm::Error ProductCache::save() const {
  if (added.empty())
    return llvm::Error::success();
  if (file.empty())
    return llvm::createStringError("measured times of products are not kept: there is no home "
                                   "folder; set GRADC_CACHE_DIR");
  json root = readObject(file);
  json &products = root[machine];
  if (!products.is_object())
    products = json::object();
  for (const auto &[product, seconds] : added)
    products[product] = {{"generated", seconds.generated}, {"library", seconds.library}};
  llvm::Error error = makeFolderOf(file);
  if (!error)
    error = replaceFile(file, root.dump(1) + "\n");
  if (!error)
    return llvm::Error::success();
  return llvm::createStringError(file + ": cannot be written: " + llvm::toString(std::move(error)) +
                                 "; products will be measured again; set GRADC_CACHE_DIR to a "
                                 "folder that can be written");
}

} // namespace gradc

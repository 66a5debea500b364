// See MeasurementCache.h.
#include "runtime/MeasurementCache.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

using nlohmann::json;

namespace gradc::rt {
namespace {

/// The file's object; an empty one where it holds none.
json readObject(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  json root = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return root.is_object() ? root : json::object();
}

/// Written beside the file and renamed onto it. Empty, or what went wrong.
std::string replaceFile(const std::string &path, const std::string &text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error)
    return error.message();
  std::string temporary = path + ".XXXXXX";
  int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0)
    return std::strerror(errno);
  ssize_t written = ::write(descriptor, text.data(), text.size());
  int failed = written == ssize_t(text.size()) ? 0 : written < 0 ? errno : ENOSPC;
  if (::close(descriptor) != 0 && failed == 0)
    failed = errno;
  if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) != 0)
    failed = errno;
  if (failed != 0)
    ::unlink(temporary.c_str());
  return failed == 0 ? "" : std::strerror(failed);
}

} // namespace

MeasurementCache::MeasurementCache(const std::string &folder, const std::string &name,
                                   std::string machine)
    : machine_(std::move(machine)) {
  if (folder.empty())
    return;
  file_ = folder + "/" + name;
  json root = readObject(file_);
  auto entries = root.find(machine_);
  if (entries == root.end() || !entries->is_object())
    return;
  for (const auto &[key, value] : entries->items())
    known_.emplace(key, value);
}

std::string MeasurementCache::defaultFolder() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("GRADC_CACHE_DIR"); !folder.empty())
    return folder;
  if (std::string caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/gradc";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/gradc";
}

std::optional<json> MeasurementCache::find(const std::string &key) const {
  auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void MeasurementCache::add(const std::string &key, json value) {
  added_[key] = value;
  known_[key] = std::move(value);
}

Status MeasurementCache::save() const {
  if (added_.empty())
    return {};
  if (file_.empty())
    return Status::machine("what was measured is not kept: there is no home folder; set "
                           "GRADC_CACHE_DIR");
  json root = readObject(file_);
  json &entries = root[machine_];
  if (!entries.is_object())
    entries = json::object();
  for (const auto &[key, value] : added_)
    entries[key] = value;
  std::string failure = replaceFile(file_, root.dump(1) + "\n");
  if (failure.empty())
    return {};
  return Status::machine(
      fmt::format("{}: cannot be written: {}; what was measured will be measured "
                  "again; set GRADC_CACHE_DIR to a folder that can be written",
                  file_, failure));
}

} // namespace gradc::rt

// See MeasurementCache.h.
#include "runtime/MeasurementCache.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/checkpoint/StrictJson.h"
#include "runtime/data/InputFile.h"

using nlohmann::json;

namespace gradc::rt {
namespace {

/// Far more than a machine's measurements take.
constexpr uint64_t mostBytes = uint64_t(16) << 20;

/// The file's object; an empty one where it holds none or is not there. What cannot be read, or is
/// no file that one would replace, is an error.
Expected<json> readObject(const std::string &path) {
  if (::access(path.c_str(), F_OK) != 0)
    return json::object();
  GRADC_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  if (file.size() > mostBytes)
    return Status::machine(
        fmt::format("{}: has {} bytes, which no file of measurements has", path, file.size()));
  std::string text(file.size(), '\0');
  GRADC_RETURN_IF_ERROR(file.read(0, std::as_writable_bytes(std::span(text))));
  auto root = parseStrictJson(text, path);
  return root.ok() && root->is_object() ? *root : json::object();
}

Status notKept(const std::string &why) {
  return Status::machine(fmt::format("{}; what was measured will be measured again; set "
                                     "GRADC_CACHE_DIR to a folder that can be written",
                                     why));
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
  auto root = readObject(file_);
  if (!root.ok()) // save() tells
    return;
  auto entries = root->find(machine_);
  if (entries == root->end() || !entries->is_object())
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
  auto root = readObject(file_);
  if (!root.ok())
    return notKept(root.status().message());
  json &entries = (*root)[machine_];
  if (!entries.is_object())
    entries = json::object();
  for (const auto &[key, value] : added_)
    entries[key] = value;
  std::string failure = replaceFile(file_, root->dump(1) + "\n");
  return failure.empty() ? Status()
                         : notKept(fmt::format("{}: cannot be written: {}", file_, failure));
}

} // namespace gradc::rt

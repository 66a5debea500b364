// The manifest is {"content": {...}, "xxh3_128": hash of the content as printed in one line}.
#include "runtime/checkpoint/Manifest.h"

#include "runtime/checkpoint/StrictJson.h"

#include <fmt/format.h>
#include <span>

namespace gradc::rt {

using nlohmann::json;

static constexpr uint64_t formatVersion = 1;

/// Keys are sorted and numbers printed in their shortest exact form, so that parsing and printing
/// again gives the same text: the hash covers every value.
static std::string hashOf(const json &content) {
  std::string text = content.dump(-1, ' ', true, json::error_handler_t::replace);
  return digestOf(std::as_bytes(std::span(text))).hash;
}

std::string printManifest(const SealedManifest &sealed) {
  json files = json::array();
  for (const ManifestFile &file : sealed.files)
    files.push_back(
        {{"name", file.name}, {"bytes", file.digest.bytes}, {"xxh3_128", file.digest.hash}});
  const Manifest &manifest = sealed.manifest;
  json content = {{"format_version", formatVersion},
                  {"step", manifest.step},
                  {"fingerprint", manifest.fingerprint},
                  {"data_cursor", manifest.dataCursor},
                  {"rng_seed", manifest.rngSeed},
                  {"files", std::move(files)},
                  {"extra", manifest.extra}};
  std::string hash = hashOf(content);
  json whole = {{"content", std::move(content)}, {"xxh3_128", std::move(hash)}};
  return whole.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

namespace {

/// Reads typed members of one object; the first that is missing or of another type is remembered.
class Members {
public:
  explicit Members(const json &object) : object_(object) {}

  void read(const char *key, uint64_t &out) {
    if (const json *value = find(key, &json::is_number_unsigned))
      out = value->get<uint64_t>();
  }
  void read(const char *key, std::string &out) {
    if (const json *value = find(key, &json::is_string))
      out = value->get_ref<const std::string &>();
  }
  /// Null when missing or of another type.
  const json *find(const char *key, bool (json::*hasType)() const noexcept) {
    auto found = object_.is_object() ? object_.find(key) : object_.end();
    if (object_.is_object() && found != object_.end() && ((*found).*hasType)())
      return &*found;
    if (problem_.empty())
      problem_ = fmt::format("\"{}\" is missing or of the wrong type", key);
    return nullptr;
  }
  const std::string &problem() const { return problem_; }

private:
  const json &object_;
  std::string problem_;
};

} // namespace

static Status damaged(std::string_view what, std::string_view problem) {
  return Status::user(fmt::format("{}: {}; the manifest is damaged", what, problem));
}

static Status readFiles(const json &list, std::string_view what, std::vector<ManifestFile> &files) {
  for (const json &entry : list) {
    ManifestFile file;
    Members members(entry);
    members.read("name", file.name);
    members.read("bytes", file.digest.bytes);
    members.read("xxh3_128", file.digest.hash);
    if (!members.problem().empty())
      return damaged(what, members.problem());
    if (file.name.empty() || file.name[0] == '.' ||
        file.name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      return damaged(what, fmt::format("file name {} leaves the folder", printable(file.name)));
    files.push_back(std::move(file));
  }
  return {};
}

Expected<SealedManifest> parseManifest(std::string_view text, std::string_view what) {
  GRADC_ASSIGN_OR_RETURN(json whole, parseStrictJson(text, what));
  Members outer(whole);
  std::string hash;
  outer.read("xxh3_128", hash);
  const json *content = outer.find("content", &json::is_object);
  if (!outer.problem().empty())
    return damaged(what, outer.problem());
  if (hashOf(*content) != hash)
    return damaged(what, "its hash does not match its content");

  SealedManifest sealed;
  uint64_t version = 0;
  Members members(*content);
  members.read("format_version", version);
  if (members.problem().empty() && version != formatVersion)
    return Status::user(fmt::format("{}: checkpoint format {} is not known, expected {}; use the "
                                    "version that wrote it",
                                    what, version, formatVersion));
  members.read("step", sealed.manifest.step);
  members.read("fingerprint", sealed.manifest.fingerprint);
  members.read("data_cursor", sealed.manifest.dataCursor);
  members.read("rng_seed", sealed.manifest.rngSeed);
  if (auto extra = content->find("extra"); extra != content->end())
    sealed.manifest.extra = *extra;
  const json *files = members.find("files", &json::is_array);
  if (!members.problem().empty())
    return damaged(what, members.problem());
  GRADC_RETURN_IF_ERROR(readFiles(*files, what, sealed.files));
  return sealed;
}

} // namespace gradc::rt

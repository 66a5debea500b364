// Finds the files behind a path and merges their tensors.
#include "runtime/checkpoint/WeightSource.h"

#include "runtime/checkpoint/StrictJson.h"
#include "runtime/data/FileError.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace gradc::rt {

namespace fs = std::filesystem;
using nlohmann::json;

/// A name that stays in its folder: no separator, not "." or "..".
static bool isPlainFileName(const std::string &name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Status WeightSource::add(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(path));
  // Moving the file into the vector leaves its tensors where they are on the heap.
  files_.push_back(std::move(file));
  paths_.push_back(path);
  for (const StoredTensor &tensor : files_.back().tensors()) {
    auto [place, isNew] = byName_.try_emplace(tensor.name, Place{&tensor, files_.size() - 1});
    if (!isNew)
      return Status::user(fmt::format("{}: tensor {} is also in {}; keep one of them", path,
                                      printable(tensor.name), paths_[place->second.file]));
  }
  return {};
}

Status WeightSource::addIndex(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(std::string text, readText(path));
  GRADC_ASSIGN_OR_RETURN(json index, parseStrictJson(text, path));
  auto weightMap = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || weightMap == index.end() || !weightMap->is_object())
    return Status::user(
        fmt::format("{}: has no \"weight_map\" object; give a safetensors index", path));

  std::set<std::string> names;
  for (const auto &[tensor, fileName] : weightMap->items()) {
    if (!fileName.is_string() || !isPlainFileName(fileName.get_ref<const std::string &>()))
      return Status::user(fmt::format("{}: tensor {} is mapped to {}; expected the name of a file "
                                      "in the same folder",
                                      path, printable(tensor),
                                      fileName.is_string()
                                          ? printable(fileName.get_ref<const std::string &>())
                                          : "something that is not a string"));
    names.insert(fileName.get_ref<const std::string &>());
  }
  for (const std::string &name : names)
    GRADC_RETURN_IF_ERROR(add((fs::path(path).parent_path() / name).string()));

  for (const auto &[tensor, fileName] : weightMap->items()) {
    const std::string &expected = fileName.get_ref<const std::string &>();
    auto place = byName_.find(tensor);
    if (place == byName_.end() ||
        fs::path(paths_[place->second.file]).filename().string() != expected)
      return Status::user(fmt::format("{}: tensor {} is not in {}; fetch the files again", path,
                                      printable(tensor), printable(expected)));
  }
  return {};
}

Status WeightSource::addFolder(const std::string &path) {
  std::error_code error;
  for (const char *name : {"model.safetensors.index.json", "model.safetensors"}) {
    fs::path candidate = fs::path(path) / name;
    if (fs::exists(candidate, error))
      return candidate.extension() == ".json" ? addIndex(candidate.string())
                                              : add(candidate.string());
  }
  std::vector<std::string> found;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".safetensors")
      found.push_back(entry->path().string());
  if (error)
    return fileError(path, "list", error.value());
  if (found.empty())
    return Status::user(fmt::format("{}: the folder holds no safetensors file; give the path of a "
                                    "model's weights",
                                    path));
  std::sort(found.begin(), found.end());
  for (const std::string &file : found)
    GRADC_RETURN_IF_ERROR(add(file));
  return {};
}

Expected<WeightSource> WeightSource::open(const std::string &path) {
  WeightSource source;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    GRADC_RETURN_IF_ERROR(source.addFolder(path));
  else if (path.ends_with(".json"))
    GRADC_RETURN_IF_ERROR(source.addIndex(path));
  else
    GRADC_RETURN_IF_ERROR(source.add(path));

  for (const auto &[name, place] : source.byName_)
    source.tensors_.push_back(place.tensor);
  std::sort(source.tensors_.begin(), source.tensors_.end(),
            [](const StoredTensor *a, const StoredTensor *b) { return a->name < b->name; });
  return source;
}

const StoredTensor *WeightSource::find(std::string_view name) const {
  auto found = byName_.find(std::string(name));
  return found == byName_.end() ? nullptr : found->second.tensor;
}

std::string WeightSource::fileOf(std::string_view name) const {
  auto found = byName_.find(std::string(name));
  return found == byName_.end() ? std::string() : paths_[found->second.file];
}

} // namespace gradc::rt

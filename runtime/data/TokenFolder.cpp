// Sorts a folder's files into training and validation data by their names.
#include "runtime/data/TokenFolder.h"

#include "runtime/data/FileError.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

namespace gradc::rt {

namespace fs = std::filesystem;

/// What a file's name says of it: its first word, between characters that are no letters, that
/// stands for a split.
static std::optional<DataSplit> splitOf(const std::string &path) {
  std::string stem = fs::path(path).stem().string(), word;
  for (char c : stem + '.') {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += char(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word == "train" || word == "training")
      return DataSplit::training;
    if (word == "val" || word == "valid" || word == "validation" || word == "test")
      return DataSplit::validation;
    word.clear();
  }
  return std::nullopt;
}

static Expected<std::vector<std::string>> tokenFiles(const std::string &folder) {
  std::vector<std::string> tokens, texts;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".bin")
      tokens.push_back(entry->path().string());
    else if (entry->path().extension() == ".txt")
      texts.push_back(entry->path().string());
  }
  if (error)
    return fileError(folder, "list", error.value());
  std::vector<std::string> &chosen = tokens.empty() ? texts : tokens;
  if (chosen.empty())
    return Status::user(fmt::format(
        "{}: the folder holds no .bin and no .txt file; give a file with tokens", folder));
  std::sort(chosen.begin(), chosen.end());
  return std::move(chosen);
}

Expected<TokenFolder> listTokenFolder(const std::string &folder, DataSplit split) {
  GRADC_ASSIGN_OR_RETURN(std::vector<std::string> all, tokenFiles(folder));
  bool named = std::any_of(all.begin(), all.end(),
                           [&](const std::string &path) { return splitOf(path) == split; });
  TokenFolder result;
  for (const std::string &path : all) {
    auto of = splitOf(path);
    bool wanted = named ? of == split : !of;
    (wanted ? result.files : result.leftOut).push_back(path);
  }
  if (result.files.empty()) {
    bool training = split == DataSplit::training;
    return Status::user(fmt::format("{}: by their names all files of the folder are for {}; for {} "
                                    "name a file of it",
                                    folder, training ? "validation" : "training",
                                    training ? "training" : "validation"));
  }
  return result;
}

} // namespace gradc::rt

// Weights as users have them: one safetensors file, a folder, or an index over several files.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Safetensors.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gradc::rt {

/// All tensors of one or several safetensors files under one roof. Keeps the files open;
/// the tensors live as long as the source.
class WeightSource {
public:
  /// `path` is a `.safetensors` file, an index (`*.index.json` with a `weight_map`), or a folder:
  /// there `model.safetensors.index.json` is taken when present, else `model.safetensors`, else
  /// every `*.safetensors`. Refused: a tensor in two files, an index that names a file outside its
  /// folder, and a mapped tensor that its file lacks.
  static Expected<WeightSource> open(const std::string &path);

  /// Null when there is none of that name.
  const StoredTensor *find(std::string_view name) const;
  /// Sorted by name.
  const std::vector<const StoredTensor *> &tensors() const { return tensors_; }
  /// The file a tensor came from, for error messages; empty when unknown.
  std::string fileOf(std::string_view name) const;

private:
  struct Place {
    const StoredTensor *tensor;
    size_t file;
  };
  Status add(const std::string &path);
  Status addIndex(const std::string &path);
  Status addFolder(const std::string &path);

  std::vector<SafetensorsFile> files_;
  std::vector<std::string> paths_; ///< of `files_`
  std::unordered_map<std::string, Place> byName_;
  std::vector<const StoredTensor *> tensors_;
};

} // namespace gradc::rt

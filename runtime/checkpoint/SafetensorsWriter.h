// Writes safetensors files whole or not at all.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace gradc::rt {

/// A tensor in memory, row-major and dense; `data` is only read, and only during the call.
struct TensorView {
  std::string name;
  FileDtype dtype = FileDtype::f32;
  std::vector<int64_t> shape; ///< empty for a scalar
  const void *data = nullptr; ///< may be null when the tensor has no elements
};

using SafetensorsMetadata = std::map<std::string, std::string>;

/// Streams the tensors straight from their memory to `path`, atomically: on any error an existing
/// file is left as it was. Tensors are laid out by falling element size, then in the order given,
/// so that each is aligned. The default metadata is what `transformers` asks for. Two tensors of
/// one name or a negative dimension are a defect of the caller. Returns size and hash of the file.
Expected<FileDigest> writeSafetensors(const std::string &path, std::span<const TensorView> tensors,
                                      const SafetensorsMetadata &metadata = {{"format", "pt"}});

} // namespace gradc::rt

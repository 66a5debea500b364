// Writes safetensors files whole or not at all.
#pragma once

#include "runtime/Status.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/checkpoint/Safetensors.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gradc::rt {

/// Where the bytes of a tensor are: in memory, or in the hands of somebody who lends them when they
/// are needed, so that tensors of a device need not all be on the host at once.
class TensorBytes {
public:
  using Use = std::function<Status(const void *)>;
  /// Calls its argument once with the address of the bytes, which ends with the call, and returns
  /// its status; or fails.
  using Lend = std::function<Status(const Use &)>;

  /// `data` may be null when the tensor has no elements.
  TensorBytes(const void *data) : lend_([data](const Use &use) { return use(data); }) {}
  TensorBytes(Lend lend) : lend_(std::move(lend)) {}

  Status access(const Use &use) const { return lend_(use); }

private:
  Lend lend_;
};

/// A tensor to be written, row-major and dense; it is only read, and only during the call.
struct TensorView {
  std::string name;
  FileDtype dtype = FileDtype::f32;
  std::vector<int64_t> shape; ///< empty for a scalar
  TensorBytes bytes = nullptr;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

/// Streams the tensors straight from where they are to `path`, atomically: on any error an existing
/// file is left as it was. Tensors are laid out by falling element size, then in the order given,
/// so that each is aligned. The default metadata is what `transformers` asks for. Two tensors of
/// one name or a negative dimension are a defect of the caller. Returns size and hash of the file.
Expected<FileDigest> writeSafetensors(const std::string &path, std::span<const TensorView> tensors,
                                      const SafetensorsMetadata &metadata = {{"format", "pt"}});

} // namespace gradc::rt

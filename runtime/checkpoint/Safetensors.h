// Reads safetensors files. A file is refused unless its header describes every byte of it exactly
// once, so a tensor can never reach outside of it, whatever the file says.
#pragma once

#include "runtime/Status.h"
#include "runtime/data/FileBytes.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gradc::rt {

/// Element types a safetensors file may hold.
enum class FileDtype {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f4,
  f6e2m3,
  f6e3m2,
  f8e4m3,
  f8e5m2,
  f8e8m0,
  f16,
  bf16,
  f32,
  f64,
  c64,
};

/// The format's own spelling, e.g. "BF16".
std::string_view dtypeName(FileDtype dtype);
unsigned dtypeBits(FileDtype dtype);

/// One tensor of a file. `bytes` are little-endian and row-major.
struct StoredTensor {
  std::string name;
  FileDtype dtype;
  std::vector<int64_t> shape; ///< empty for a scalar
  FileBytes bytes;

  uint64_t elementCount() const;
};

/// Reads and converts an F64, F32, F16 or BF16 tensor; `out` holds `elementCount()` floats. Other
/// types are a user error.
Status toFloats(const StoredTensor &tensor, float *out);

/// Has read the header alone; the tensors keep the file open.
class SafetensorsFile {
public:
  static Expected<SafetensorsFile> open(const std::string &path);
  /// A whole file, or an image of one; `what` begins each error.
  static Expected<SafetensorsFile> parse(const FileBytes &bytes, std::string_view what);

  /// In the order of their bytes.
  const std::vector<StoredTensor> &tensors() const { return tensors_; }
  /// Null when there is none of that name.
  const StoredTensor *find(std::string_view name) const;
  const std::map<std::string, std::string> &metadata() const { return metadata_; }

private:
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, size_t> indexOf_;
  std::map<std::string, std::string> metadata_;
};

} // namespace gradc::rt

// Builds the header, then streams header and tensors through an AtomicFile.
#include "runtime/checkpoint/SafetensorsWriter.h"

#include "runtime/checkpoint/AtomicFile.h"
#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

namespace gradc::rt {

using nlohmann::json;

namespace {

/// A tensor with its bytes' place in the file's data section.
struct Placed {
  const TensorView *tensor;
  uint64_t bytes;
  uint64_t begin;
};

Expected<uint64_t> bytesOf(const TensorView &tensor) {
  uint64_t bits = dtypeBits(tensor.dtype);
  for (int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits))
      return Status::defect(
          fmt::format("tensor {} has a shape that cannot be stored", printable(tensor.name)));
  if (bits % 8 != 0)
    return Status::defect(
        fmt::format("tensor {} does not end on a whole byte", printable(tensor.name)));
  return bits / 8;
}

Expected<std::vector<Placed>> place(std::span<const TensorView> tensors) {
  std::vector<Placed> placed;
  std::unordered_set<std::string_view> names;
  for (const TensorView &tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      return Status::defect(
          fmt::format("tensor name {} is reserved or given twice", printable(tensor.name)));
    GRADC_ASSIGN_OR_RETURN(uint64_t bytes, bytesOf(tensor));
    placed.push_back({&tensor, bytes, 0});
  }
  // Views lie in one array: their addresses are their order.
  std::sort(placed.begin(), placed.end(), [](const Placed &a, const Placed &b) {
    unsigned bitsOfA = dtypeBits(a.tensor->dtype), bitsOfB = dtypeBits(b.tensor->dtype);
    return bitsOfA != bitsOfB ? bitsOfA > bitsOfB : a.tensor < b.tensor;
  });
  uint64_t end = 0;
  for (Placed &each : placed) {
    each.begin = end;
    if (__builtin_add_overflow(end, each.bytes, &end))
      return Status::defect("the tensors to be saved exceed 64-bit sizes");
  }
  return placed;
}

/// Length prefix and JSON, padded with spaces so that the data begins on a multiple of 8.
std::string headerOf(const std::vector<Placed> &placed, const SafetensorsMetadata &metadata) {
  json header = json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  for (const Placed &each : placed)
    header[each.tensor->name] = {{"dtype", dtypeName(each.tensor->dtype)},
                                 {"shape", each.tensor->shape},
                                 {"data_offsets", {each.begin, each.begin + each.bytes}}};
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + text;
}

} // namespace

Expected<FileDigest> writeSafetensors(const std::string &path, std::span<const TensorView> tensors,
                                      const SafetensorsMetadata &metadata) {
  GRADC_ASSIGN_OR_RETURN(std::vector<Placed> placed, place(tensors));
  std::string header = headerOf(placed, metadata);
  uint64_t dataBytes = placed.empty() ? 0 : placed.back().begin + placed.back().bytes;

  GRADC_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path, header.size() + dataBytes));
  GRADC_RETURN_IF_ERROR(file.write(header.data(), header.size()));
  for (const Placed &each : placed)
    GRADC_RETURN_IF_ERROR(each.tensor->bytes.access(
        [&](const void *bytes) { return file.write(bytes, each.bytes); }));
  return file.commit();
}

} // namespace gradc::rt

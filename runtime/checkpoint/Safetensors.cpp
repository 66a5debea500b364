// Checks and reads safetensors headers, and converts element types to float.
#include "runtime/checkpoint/Safetensors.h"

#include "runtime/checkpoint/StrictJson.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <span>
#include <tuple>

namespace gradc::rt {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the file formats are little-endian");

namespace {

struct DtypeInfo {
  FileDtype dtype;
  std::string_view name;
  unsigned bits;
};

constexpr std::array<DtypeInfo, 20> dtypes = {{
    {FileDtype::boolean, "BOOL", 8},   {FileDtype::u8, "U8", 8},
    {FileDtype::i8, "I8", 8},          {FileDtype::u16, "U16", 16},
    {FileDtype::i16, "I16", 16},       {FileDtype::u32, "U32", 32},
    {FileDtype::i32, "I32", 32},       {FileDtype::u64, "U64", 64},
    {FileDtype::i64, "I64", 64},       {FileDtype::f4, "F4", 4},
    {FileDtype::f6e2m3, "F6_E2M3", 6}, {FileDtype::f6e3m2, "F6_E3M2", 6},
    {FileDtype::f8e4m3, "F8_E4M3", 8}, {FileDtype::f8e5m2, "F8_E5M2", 8},
    {FileDtype::f8e8m0, "F8_E8M0", 8}, {FileDtype::f16, "F16", 16},
    {FileDtype::bf16, "BF16", 16},     {FileDtype::f32, "F32", 32},
    {FileDtype::f64, "F64", 64},       {FileDtype::c64, "C64", 64},
}};

constexpr uint64_t maxHeaderBytes = 100'000'000;

/// A tensor's entry in the header before its place is known to be sound.
struct Entry {
  StoredTensor tensor;
  uint64_t begin;
  uint64_t end;
};

std::optional<FileDtype> dtypeNamed(std::string_view name) {
  for (const DtypeInfo &info : dtypes)
    if (info.name == name)
      return info.dtype;
  return std::nullopt;
}

const json *member(const json &object, const char *key) {
  auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Reads `shape` and checks that its elements fill `end - begin` bytes exactly.
std::string readShape(const json *shape, Entry &entry) {
  if (!shape || !shape->is_array())
    return "has no \"shape\" array";
  uint64_t bits = dtypeBits(entry.tensor.dtype);
  for (const json &dim : *shape) {
    if (!dim.is_number_unsigned())
      return "has a dimension that is not a non-negative integer";
    uint64_t size = dim.get<uint64_t>();
    if (size > uint64_t(std::numeric_limits<int64_t>::max()) ||
        __builtin_mul_overflow(bits, size, &bits))
      return "has a shape whose size overflows 64 bits";
    entry.tensor.shape.push_back(static_cast<int64_t>(size));
  }
  if (bits % 8 != 0)
    return "does not end on a whole byte";
  if (bits / 8 != entry.end - entry.begin)
    return fmt::format("needs {} bytes by its shape but its offsets span {}", bits / 8,
                       entry.end - entry.begin);
  return {};
}

/// Fills `entry` from its JSON; the result says what is wrong, empty when nothing is.
std::string readEntry(const json &value, Entry &entry) {
  if (!value.is_object())
    return "is not described by a JSON object";
  const json *dtype = member(value, "dtype");
  if (!dtype || !dtype->is_string())
    return "has no \"dtype\" string";
  auto known = dtypeNamed(dtype->get_ref<const std::string &>());
  if (!known)
    return fmt::format("has unknown dtype {}", printable(dtype->get_ref<const std::string &>()));
  entry.tensor.dtype = *known;

  const json *offsets = member(value, "data_offsets");
  if (!offsets || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
    return "has no \"data_offsets\" pair of non-negative integers";
  entry.begin = (*offsets)[0].get<uint64_t>();
  entry.end = (*offsets)[1].get<uint64_t>();
  if (entry.begin > entry.end)
    return "has data_offsets that run backwards";
  return readShape(member(value, "shape"), entry);
}

Status readMetadata(const json &value, std::string_view what,
                    std::map<std::string, std::string> &metadata) {
  if (!value.is_object())
    return Status::user(fmt::format("{}: \"__metadata__\" is not a JSON object", what));
  for (const auto &[key, text] : value.items()) {
    if (!text.is_string())
      return Status::user(
          fmt::format("{}: \"__metadata__\" entry {} is not a string", what, printable(key)));
    metadata[key] = text.get_ref<const std::string &>();
  }
  return {};
}

/// Checks that the entries tile the `size` data bytes: no hole, no overlap, nothing behind.
Status checkTiling(const std::vector<Entry> &entries, uint64_t size, std::string_view what) {
  uint64_t end = 0;
  for (const Entry &entry : entries) {
    if (entry.begin != end)
      return Status::user(fmt::format("{}: tensor {} begins at data byte {}, expected {}: the file "
                                      "has a hole or an overlap; write it again",
                                      what, printable(entry.tensor.name), entry.begin, end));
    end = entry.end;
  }
  if (end != size)
    return Status::user(fmt::format("{}: the header describes {} data bytes but the file holds {}; "
                                    "it is truncated or has bytes behind: fetch it again",
                                    what, end, size));
  return {};
}

/// The header's text, after checks of its length.
Expected<std::string> headerText(const FileBytes &file, std::string_view what) {
  uint64_t length = 0;
  if (file.size() < sizeof(length))
    return Status::user(fmt::format(
        "{}: {} bytes are too few for a safetensors file; fetch it again", what, file.size()));
  GRADC_RETURN_IF_ERROR(file.read(std::as_writable_bytes(std::span(&length, 1))));
  if (length > maxHeaderBytes)
    return Status::user(fmt::format("{}: header length {} is over the format's limit {}; this is "
                                    "not a safetensors file",
                                    what, length, maxHeaderBytes));
  if (length > file.size() - sizeof(length))
    return Status::user(fmt::format("{}: the header needs {} bytes but only {} follow; the file is "
                                    "truncated: fetch it again",
                                    what, length, file.size() - sizeof(length)));
  std::string text(length, '\0');
  GRADC_RETURN_IF_ERROR(
      file.subspan(sizeof(length), length).read(std::as_writable_bytes(std::span(text))));
  if (text.empty() || text.front() != '{')
    return Status::user(fmt::format(
        "{}: the header does not begin with '{{'; this is not a safetensors file", what));
  return text;
}

} // namespace

std::string_view dtypeName(FileDtype dtype) { return dtypes[static_cast<size_t>(dtype)].name; }
unsigned dtypeBits(FileDtype dtype) { return dtypes[static_cast<size_t>(dtype)].bits; }

uint64_t StoredTensor::elementCount() const { return bytes.size() * 8 / dtypeBits(dtype); }

Expected<SafetensorsFile> SafetensorsFile::parse(const FileBytes &bytes, std::string_view what) {
  GRADC_ASSIGN_OR_RETURN(std::string text, headerText(bytes, what));
  GRADC_ASSIGN_OR_RETURN(json header,
                         parseStrictJson(text, fmt::format("{}: safetensors header", what)));
  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto &[name, value] : header.items()) {
    if (name == "__metadata__") {
      GRADC_RETURN_IF_ERROR(readMetadata(value, what, file.metadata_));
      continue;
    }
    Entry entry{};
    entry.tensor.name = name;
    if (std::string problem = readEntry(value, entry); !problem.empty())
      return Status::user(fmt::format("{}: tensor {} {}; the file is damaged: fetch it again", what,
                                      printable(name), problem));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });

  uint64_t headerBytes = sizeof(uint64_t) + text.size();
  FileBytes data = bytes.subspan(headerBytes, bytes.size() - headerBytes);
  GRADC_RETURN_IF_ERROR(checkTiling(entries, data.size(), what));
  for (Entry &entry : entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    file.indexOf_.emplace(entry.tensor.name, file.tensors_.size());
    file.tensors_.push_back(std::move(entry.tensor));
  }
  return file;
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  return parse(FileBytes(std::move(file)), path);
}

const StoredTensor *SafetensorsFile::find(std::string_view name) const {
  auto found = indexOf_.find(std::string(name));
  return found == indexOf_.end() ? nullptr : &tensors_[found->second];
}

//===----------------------------------------------------------------------===//
// Conversion to float
//===----------------------------------------------------------------------===//

static float floatOfBits(uint32_t bits) { return std::bit_cast<float>(bits); }

static float floatOfBf16(uint16_t bits) { return floatOfBits(uint32_t(bits) << 16); }

static float floatOfF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) // infinity or NaN
    return floatOfBits(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) { // zero or subnormal: mantissa x 2^-24, exact in float
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return floatOfBits(sign | (exponent + 112) << 23 | mantissa << 13);
}

/// A part at a time, so that little more than `out` is resident.
template <typename Element, typename Convert>
static Status convertEach(const FileBytes &bytes, float *out, Convert convert) {
  std::array<Element, 4096> part;
  uint64_t count = bytes.size() / sizeof(Element);
  for (uint64_t first = 0; first < count; first += part.size()) {
    std::span<Element> elements(part.data(), std::min<uint64_t>(part.size(), count - first));
    GRADC_RETURN_IF_ERROR(bytes.subspan(first * sizeof(Element), elements.size_bytes())
                              .read(std::as_writable_bytes(elements)));
    std::transform(elements.begin(), elements.end(), out + first, convert);
  }
  return {};
}

Status toFloats(const StoredTensor &tensor, float *out) {
  switch (tensor.dtype) {
  case FileDtype::f32:
    return tensor.bytes.read(std::as_writable_bytes(std::span(out, tensor.elementCount())));
  case FileDtype::f64:
    return convertEach<double>(tensor.bytes, out,
                               [](double value) { return static_cast<float>(value); });
  case FileDtype::f16:
    return convertEach<uint16_t>(tensor.bytes, out, floatOfF16);
  case FileDtype::bf16:
    return convertEach<uint16_t>(tensor.bytes, out, floatOfBf16);
  default:
    return Status::user(fmt::format(
        "tensor {} has dtype {}; expected F32, BF16, F16 or F64: convert it before loading",
        printable(tensor.name), dtypeName(tensor.dtype)));
  }
}

} // namespace gradc::rt

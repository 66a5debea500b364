// Event files are a few protobuf fields in checksummed records. The three message types used here
// have six fields between them, so they are encoded by hand instead of linking protobuf:
//   Event   { 1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary summary }
//   Summary { 1: repeated Value value }     Value { 1: string tag, 2: float simple_value }
#include "runtime/metrics/TensorBoard.h"

#include "runtime/data/FileError.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace gradc::rt {

namespace {

constexpr std::array<uint32_t, 256> crcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0u);
    table[i] = value;
  }
  return table;
}();

enum WireType : uint8_t { varint = 0, fixed64 = 1, lengthDelimited = 2, fixed32 = 5 };

void putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void putKey(std::string &out, unsigned field, WireType type) { putVarint(out, field << 3 | type); }

template <typename Number> void putFixed(std::string &out, Number value) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &value, sizeof(value));
  out.append(bytes, sizeof(bytes));
}

void putBytes(std::string &out, unsigned field, std::string_view bytes) {
  putKey(out, field, lengthDelimited);
  putVarint(out, bytes.size());
  out += bytes;
}

/// An event with its time; the caller adds what happened.
std::string eventNow() {
  using namespace std::chrono;
  std::string event;
  putKey(event, 1, fixed64);
  putFixed(event, duration<double>(system_clock::now().time_since_epoch()).count());
  return event;
}

/// Records store their checksums rotated and offset, so that one over checksummed data differs.
uint32_t maskedCrc(std::string_view bytes) {
  uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

} // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (char byte : bytes)
    crc = crcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

Expected<TensorBoard> TensorBoard::create(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fileError(folder, "create the folder", error.value());
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0)
    std::strcpy(host, "localhost");
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  std::string path =
      fmt::format("{}/events.out.tfevents.{}.{}.{}", folder, seconds.count(), host, ::getpid());
  std::FILE *file = std::fopen(path.c_str(), "ae");
  if (!file)
    return fileError(path, "create", errno);
  TensorBoard board(path, file);
  std::string event = eventNow();
  putBytes(event, 3, "brain.Event:2");
  GRADC_RETURN_IF_ERROR(board.record(event));
  return board;
}

TensorBoard::~TensorBoard() {
  if (file_)
    std::fclose(file_);
}

Status TensorBoard::record(const std::string &event) {
  std::string bytes;
  putFixed(bytes, uint64_t(event.size()));
  putFixed(bytes, maskedCrc(bytes));
  bytes += event;
  putFixed(bytes, maskedCrc(event));
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0)
    return fileError(path_, "write", errno);
  return {};
}

Status TensorBoard::scalar(std::string_view tag, uint64_t step, double value) {
  std::string number, summary, event = eventNow();
  putBytes(number, 1, tag);
  putKey(number, 2, fixed32);
  putFixed(number, static_cast<float>(value));
  putBytes(summary, 1, number);
  putKey(event, 2, varint);
  putVarint(event, step);
  putBytes(event, 5, summary);
  return record(event);
}

Status TensorBoard::append(const StepMetrics &metrics) {
  const std::pair<const char *, double> figures[] = {
      {"train/loss", metrics.loss},
      {"train/grad_norm", metrics.gradNorm},
      {"train/lr", metrics.learningRate},
      {"train/tokens_per_s", metrics.tokensPerSecond},
  };
  for (const auto &[tag, value] : figures)
    GRADC_RETURN_IF_ERROR(scalar(tag, metrics.step, value));
  if (metrics.mfu)
    GRADC_RETURN_IF_ERROR(scalar("train/mfu", metrics.step, *metrics.mfu));
  return metrics.valLoss ? scalar("val/loss", metrics.step, *metrics.valLoss) : Status();
}

} // namespace gradc::rt

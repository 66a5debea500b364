// Detects, checks and reads the token file formats.
#include "runtime/data/TokenSource.h"

#include "runtime/data/FileError.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace gradc::rt {

namespace fs = std::filesystem;

namespace {

constexpr uint32_t llmcMagic16 = 20240520, llmcVersion16 = 1;
constexpr uint32_t llmcMagic32 = 20240801, llmcVersion32 = 7;
constexpr size_t llmcHeaderBytes = 256 * sizeof(int32_t);

/// What a file's bytes mean.
struct Layout {
  TokenFormat format;
  size_t headerBytes;
  uint64_t count;
};

size_t bytesPerToken(TokenFormat format) {
  switch (format) {
  case TokenFormat::text:
    return 1;
  case TokenFormat::nanoGpt:
  case TokenFormat::llmc16Bit:
    return 2;
  case TokenFormat::llmc32Bit:
    break;
  }
  return 4;
}

/// The first words of a file; 0 what lies behind its end.
using Head = std::array<uint32_t, 3>;

Expected<Head> readHead(const InputFile &file) {
  Head head{};
  auto bytes = std::as_writable_bytes(std::span(head));
  GRADC_RETURN_IF_ERROR(file.read(0, bytes.first(std::min<size_t>(bytes.size(), file.size()))));
  return head;
}

Expected<Layout> llmcLayout(const std::string &path, const Head &head, uint64_t bytes) {
  if (bytes < llmcHeaderBytes)
    return Status::user(fmt::format("{}: {} bytes are too few for the llm.c header of {}; the file "
                                    "is truncated: write it again",
                                    path, bytes, llmcHeaderBytes));
  auto [magic, version, words] = head;
  bool wide = magic == llmcMagic32;
  uint32_t expected = wide ? llmcVersion32 : llmcVersion16;
  if (version != expected)
    return Status::user(
        fmt::format("{}: llm.c token file of version {}, expected {}; write it again", path,
                    version, expected));
  TokenFormat format = wide ? TokenFormat::llmc32Bit : TokenFormat::llmc16Bit;
  uint64_t count = words;
  uint64_t needed = llmcHeaderBytes + count * bytesPerToken(format);
  if (needed != bytes)
    return Status::user(fmt::format("{}: the header's {} tokens need {} bytes but the file has {}; "
                                    "it is truncated or damaged: write it again",
                                    path, count, needed, bytes));
  return Layout{format, llmcHeaderBytes, count};
}

/// Megatron keeps its element type in a second file; read as nanoGPT its `.bin` would be nonsense.
bool hasMegatronIndex(const std::string &path) {
  constexpr std::string_view magic = "MMIDIDX";
  auto index = InputFile::open(fs::path(path).replace_extension(".idx").string());
  std::string begin(magic.size(), ' ');
  return index.ok() && index->size() >= begin.size() &&
         index->read(0, std::as_writable_bytes(std::span(begin))).ok() && begin == magic;
}

Expected<Layout> detect(const std::string &path, const InputFile &file) {
  uint64_t bytes = file.size();
  if (bytes == 0)
    return Status::user(fmt::format("{}: the file is empty; give a file with tokens", path));
  GRADC_ASSIGN_OR_RETURN(Head head, readHead(file));
  if (head[0] == llmcMagic16 || head[0] == llmcMagic32)
    return llmcLayout(path, head, bytes);
  if (fs::path(path).extension() != ".bin")
    return Layout{TokenFormat::text, 0, bytes};
  if (hasMegatronIndex(path))
    return Status::user(fmt::format("{}: belongs to a Megatron dataset (an .idx file lies beside "
                                    "it); convert it to raw 16-bit tokens",
                                    path));
  if (bytes % 2 != 0)
    return Status::user(fmt::format("{}: {} bytes are not a whole number of 16-bit tokens; the "
                                    "file is truncated: write it again",
                                    path, bytes));
  return Layout{TokenFormat::nanoGpt, 0, bytes / 2};
}

/// Widens `count` ids to 32 bits and returns how many of them, from the first, are in the vocab.
template <typename Id>
uint64_t widen(const std::byte *from, uint64_t count, int32_t *out, int64_t vocabSize) {
  for (uint64_t i = 0; i < count; ++i) {
    Id id;
    std::memcpy(&id, from + i * sizeof(Id), sizeof(Id));
    if (static_cast<int64_t>(id) >= vocabSize || int64_t(id) > INT32_MAX)
      return i;
    out[i] = static_cast<int32_t>(id);
  }
  return count;
}

uint32_t idAt(const std::byte *from, size_t width) {
  uint32_t id = 0;
  std::memcpy(&id, from, width);
  return id;
}

} // namespace

std::string_view tokenFormatName(TokenFormat format) {
  switch (format) {
  case TokenFormat::text:
    return "text as bytes";
  case TokenFormat::nanoGpt:
    return "nanoGPT 16-bit";
  case TokenFormat::llmc16Bit:
    return "llm.c 16-bit";
  case TokenFormat::llmc32Bit:
    break;
  }
  return "llm.c 32-bit";
}

Status TokenSource::add(const std::string &path) {
  GRADC_ASSIGN_OR_RETURN(InputFile input, InputFile::open(path));
  GRADC_ASSIGN_OR_RETURN(Layout layout, detect(path, input));
  files_.push_back({path, layout.format, layout.headerBytes, size_, layout.count});
  inputs_.add(path, std::move(input));
  size_ += layout.count;
  return {};
}

std::string TokenSource::choice() const {
  if (leftOut_.empty())
    return {};
  auto names = [](const std::vector<std::string> &paths) {
    std::string text;
    for (const std::string &path : paths)
      text += (text.empty() ? "" : ", ") + fs::path(path).filename().string();
    return text;
  };
  std::vector<std::string> used;
  for (const File &file : files_)
    used.push_back(file.path);
  return fmt::format("{}: reading {}; left out by their names: {}", path_, names(used),
                     names(leftOut_));
}

Expected<std::unique_ptr<TokenSource>> openTokens(const std::string &path, uint64_t sequenceLength,
                                                  DataSplit split) {
  auto source = std::make_unique<TokenSource>();
  source->path_ = path;
  TokenFolder folder{{path}, {}};
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    GRADC_ASSIGN_OR_RETURN(folder, listTokenFolder(path, split));
  }
  for (const std::string &file : folder.files)
    GRADC_RETURN_IF_ERROR(source->add(file));
  source->leftOut_ = std::move(folder.leftOut);

  if (sequenceLength == 0)
    return Status::user("the sequence length is 0; it must be at least 1");
  if (source->size_ <= sequenceLength)
    return Status::user(fmt::format("{}: holds {} tokens but {} are needed for one sequence of "
                                    "length {} and its targets; give more data or a shorter --seq",
                                    path, source->size_, sequenceLength + 1, sequenceLength));
  return source;
}

Status TokenSource::read(uint64_t begin, uint64_t count, int32_t *out, int64_t vocabSize) const {
  if (begin > size_ || count > size_ - begin)
    return Status::defect(fmt::format("{}: tokens {} to {} were asked for but there are {}", path_,
                                      begin, begin + count, size_));
  // The last file that begins at or before `begin`; files are never empty but for a header of 0.
  auto file = std::upper_bound(files_.begin(), files_.end(), begin,
                               [](uint64_t at, const File &each) { return at < each.first; });
  for (--file; count > 0; ++file) {
    uint64_t offset = begin - file->first;
    uint64_t taken = std::min(count, file->count - offset);
    GRADC_RETURN_IF_ERROR(
        readFrom(static_cast<size_t>(file - files_.begin()), offset, taken, out, vocabSize));
    begin += taken;
    count -= taken;
    out += taken;
  }
  return {};
}

Status TokenSource::readFrom(size_t index, uint64_t begin, uint64_t count, int32_t *out,
                             int64_t vocabSize) const {
  const File &file = files_[index];
  size_t width = bytesPerToken(file.format);
  GRADC_ASSIGN_OR_RETURN(auto input, inputs_.use(index));
  std::vector<std::byte> bytes(count * width);
  GRADC_RETURN_IF_ERROR(input->read(file.headerBytes + begin * width, bytes));
  const std::byte *from = bytes.data();
  uint64_t good = width == 1   ? widen<uint8_t>(from, count, out, vocabSize)
                  : width == 2 ? widen<uint16_t>(from, count, out, vocabSize)
                               : widen<uint32_t>(from, count, out, vocabSize);
  if (good == count)
    return {};
  std::string_view mend = file.format == TokenFormat::text
                              ? "plain text is read as bytes and needs a vocabulary of 256"
                              : "retokenise with the model's tokenizer";
  return Status::user(
      fmt::format("{}: token id {} at position {} is not below the vocabulary size {}; {}",
                  file.path, idAt(from + good * width, width), begin + good, vocabSize, mend));
}

} // namespace gradc::rt

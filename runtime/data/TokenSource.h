// Token data as people have it: plain text taken as bytes, nanoGPT's raw 16-bit files, llm.c's
// files with a header. Read at offsets and not mapped: what was read does not stay resident,
// however long the run, and a file that is cut short meanwhile is an error and no signal.
#pragma once

#include "runtime/Status.h"
#include "runtime/data/OpenFiles.h"
#include "runtime/data/TokenFolder.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gradc::rt {

enum class TokenFormat {
  text,      ///< one byte a token, ids below 256
  nanoGpt,   ///< raw little-endian 16-bit ids, extension .bin
  llmc16Bit, ///< llm.c header, then 16-bit ids
  llmc32Bit, ///< llm.c header, then 32-bit ids
};

/// Words for `info` lines, e.g. "nanoGPT 16-bit".
std::string_view tokenFormatName(TokenFormat format);

/// A sequence of tokens; of several files, they follow one another. Reading is safe from any
/// number of threads.
class TokenSource {
public:
  /// The number of tokens.
  uint64_t size() const { return size_; }
  const std::string &path() const { return path_; }
  /// One line on what was chosen of a folder; empty when nothing was left out.
  std::string choice() const;
  /// Of the first file.
  TokenFormat format() const { return files_.front().format; }

  /// Copies tokens [begin, begin + count) to `out`. An id that is not below `vocabSize` is a user
  /// error that names its file and position; a file that has become shorter, or that is no
  /// longer the one that was opened, is a fault of the machine; a range past the end is a defect of
  /// the caller.
  Status read(uint64_t begin, uint64_t count, int32_t *out, int64_t vocabSize) const;

private:
  friend Expected<std::unique_ptr<TokenSource>>
  openTokens(const std::string &path, uint64_t sequenceLength, DataSplit split);
  struct File {
    std::string path;
    TokenFormat format;
    size_t headerBytes;
    uint64_t first; ///< position of its first token in the whole sequence
    uint64_t count;
  };
  Status add(const std::string &path);
  Status readFrom(size_t index, uint64_t begin, uint64_t count, int32_t *out,
                  int64_t vocabSize) const;

  std::string path_;
  std::vector<File> files_;  ///< never empty once open
  mutable OpenFiles inputs_; ///< of files_, by their index
  std::vector<std::string> leftOut_;
  uint64_t size_ = 0;
};

/// Opens a file, or a folder of which the files for `split` (listTokenFolder) are joined in sorted
/// order. Each file's format is detected: an llm.c magic number; else the extension .bin means
/// nanoGPT; else text. Refused: empty files, sizes that do not fit the format, and data shorter
/// than `sequenceLength` + 1 tokens, without which there is nothing to predict.
Expected<std::unique_ptr<TokenSource>> openTokens(const std::string &path,
                                                  uint64_t sequenceLength = 1,
                                                  DataSplit split = DataSplit::training);

} // namespace gradc::rt

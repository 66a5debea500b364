// Which files of a folder are meant: people keep training and validation data side by side.
#pragma once

#include "runtime/Status.h"

#include <string>
#include <vector>

namespace gradc::rt {

/// What data is read for. It matters where a folder holds files of both kinds.
enum class DataSplit { training, validation };

/// The files of a folder that are read, and those of the same extension that are not, both sorted.
struct TokenFolder {
  std::vector<std::string> files, leftOut; ///< paths
};

/// Looks at the *.bin files (the *.txt files when there is no *.bin). A word in a file's name says
/// what it is: `train`, or one of `val`, `valid`, `validation`, `test`, e.g. nanoGPT's train.bin
/// and val.bin, llm.c's fineweb_train_000001.bin. Where some are of the wanted split, only these
/// are read; else all that are not of the other. It is a user error when nothing is left.
Expected<TokenFolder> listTokenFolder(const std::string &folder, DataSplit split);

} // namespace gradc::rt

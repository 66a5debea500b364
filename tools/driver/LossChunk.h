// The value of --loss-chunk as Options::lossChunk has it, and back.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace gradc {

/// Rows: a number, 0 or "off" for all of them, -1 for "auto"; nothing where the text is none.
std::optional<int64_t> parseLossChunk(llvm::StringRef text);

/// "auto" or a number of rows.
std::string formatLossChunk(int64_t rows);

} // namespace gradc

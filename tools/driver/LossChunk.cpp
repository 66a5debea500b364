// See LossChunk.h.
#include "tools/driver/LossChunk.h"

namespace gradc {

std::optional<int64_t> parseLossChunk(llvm::StringRef text) {
  if (text == "auto")
    return -1;
  int64_t rows = 0;
  if (text != "off" && (text.getAsInteger(10, rows) || rows < 0))
    return std::nullopt;
  return rows;
}

std::string formatLossChunk(int64_t rows) { return rows < 0 ? "auto" : std::to_string(rows); }

} // namespace gradc

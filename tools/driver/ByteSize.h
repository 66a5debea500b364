// Sizes in bytes as people write and read them.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace gradc {

/// "900MiB", "1.5 GiB", "6GB", "123456789": a positive number and a unit, B (the default), KiB,
/// MiB, GiB, TiB, or kB, MB, GB, TB of powers of 1000, in any case. Nothing where the text is
/// another.
std::optional<int64_t> parseByteSize(llvm::StringRef text);

/// "2.41 GiB" or "516.7 MiB".
std::string formatByteSize(int64_t bytes);

} // namespace gradc

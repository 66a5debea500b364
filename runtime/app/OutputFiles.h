// Files that are written at the end of a long run: better refused before it.
#pragma once

#include <string>

#include "runtime/Status.h"

namespace gradc::rt {

/// A user status when a file at `path` could not be created or replaced: its folder is missing or
/// not writable, or it is a folder itself. An empty path is fine.
Status checkWritable(const std::string &path);

} // namespace gradc::rt

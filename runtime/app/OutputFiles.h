// Files that are written at the end of a long run: better refused before it.
#pragma once

#include <initializer_list>
#include <string>

#include "runtime/Status.h"

namespace gradc::rt {

/// A user status when a file at `path` could not be created or replaced: its folder is missing or
/// not writable, or it is a folder itself. An empty path is fine.
Status checkWritable(const std::string &path);

/// A user status when an output is the same file as an input, which writing would destroy. Empty
/// paths are fine.
Status checkDistinct(std::initializer_list<std::string> outputs,
                     std::initializer_list<std::string> inputs);

} // namespace gradc::rt

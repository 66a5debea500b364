// One wording for failed system calls on files, and the exit code that each errno deserves: a path
// the user can mend is the user's error, a full or failing disk is a fault of the machine.
#pragma once

#include "runtime/Status.h"

#include <string_view>

namespace gradc::rt {

/// `PATH: cannot ACTION: <text of errno>; MEND`. `mend` may be empty: a text is chosen by errno.
Status fileError(std::string_view path, std::string_view action, int error,
                 std::string_view mend = {});

} // namespace gradc::rt

// How the command line ends: one line on stderr and an exit code.
#pragma once

#include <string>

namespace gradc {

/// Exit codes, fixed by the command line's contract.
enum class Exit : int { done = 0, userError = 1, machineFault = 2, defect = 70 };

struct Failure {
  Exit code = Exit::done;
  std::string message; ///< one line: what, where and the mend
  explicit operator bool() const { return code != Exit::done; }
};

} // namespace gradc

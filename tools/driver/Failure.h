// How the command line ends: one line on stderr and an exit code.
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace gradc {

/// Exit codes, fixed by the command line's contract.
enum class Exit : int { done = 0, userError = 1, machineFault = 2, defect = 70 };

struct Failure {
  Exit code = Exit::done;
  std::string message; ///< one line: what, where and the mend
  explicit operator bool() const { return code != Exit::done; }
};

/// The first line of an error's message.
inline std::string oneLine(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  return text.substr(0, text.find('\n'));
}

} // namespace gradc

// An error that is the machine's: a disk that is full, a tool of another maker that fails. All
// other errors of code generation are the user's or ours, as the one who asked for it knows.
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace gradc::codegen {

class MachineFault : public llvm::ErrorInfo<MachineFault> {
public:
  static char ID;

  /// One line: what, where and the mend.
  explicit MachineFault(std::string message) : message(std::move(message)) {}
  void log(llvm::raw_ostream &stream) const override { stream << message; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string message;
};

} // namespace gradc::codegen

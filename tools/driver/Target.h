// What --target names.
#pragma once

#include "codegen/Backend.h"
#include "tools/driver/Compile.h"

namespace gradc {

/// The backend that a request asks for; the error is the user's.
llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request);

} // namespace gradc

// What --target names.
#pragma once

#include "codegen/Backend.h"
#include "tools/driver/Compile.h"

namespace gradc {

/// What --target takes, for texts: "cpu, cuda:sm_80, cuda:sm_86" and so on.
std::string targetNames();

/// The backend that a request asks for; the error is the user's.
llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request);

} // namespace gradc

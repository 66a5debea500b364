// What --target names.
#pragma once

#include "codegen/Backend.h"
#include "tools/driver/Compile.h"

namespace gradc {

/// What --target takes, for texts: "cpu, cuda:sm_80, cuda:sm_86" and so on.
std::string targetNames();

/// This machine, with products cut for the threads that the request asks for.
codegen::CpuTarget hostOf(const CompileRequest &request);

/// The backend that a request asks for; the error is the user's. `times` is asked where the request
/// is for the faster products, and outlives the backend.
llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request,
                                                              codegen::ProductTimes *times);

} // namespace gradc

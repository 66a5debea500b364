// What --target names.
#pragma once

#include "codegen/Backend.h"
#include "tools/driver/Compile.h"

namespace gradc {

/// This machine, with products cut for the threads that the request asks for.
codegen::CpuTarget hostOf(const CompileRequest &request);

/// The backend that a request asks for; the error is the user's. `times` is asked where the request
/// is for the faster products, and outlives the backend.
llvm::Expected<std::unique_ptr<codegen::Backend>> makeBackend(const CompileRequest &request,
                                                              codegen::ProductTimes *times);

} // namespace gradc

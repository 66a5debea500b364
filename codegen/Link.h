// Links a compiled object with the runtime to an executable.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace gradc::codegen {

/// Runs the system's C++ compiler as a linker: GRADC_LINKER, else clang++-22, clang++ or c++ of
/// PATH. The runtime's libraries are looked for in GRADC_RUNTIME_DIR, else beside this program
/// (../lib/gradc, ../lib); so are those of `libraries` that are archives, before the runtime
/// itself.
llvm::Error linkExecutable(const std::string &objectPath, const std::string &executablePath,
                           llvm::ArrayRef<std::string> libraries);

} // namespace gradc::codegen

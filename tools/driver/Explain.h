// `gradc explain`: what each pass did and why, of an executable or of a model that is planned for
// it.
#pragma once

#include "tools/driver/Compile.h"

namespace gradc {

/// Whether the file is an executable or object file, rather than a model definition.
bool isExecutableFile(llvm::StringRef path);

/// Flags, decisions by topic and commands of an executable, read from its section .gradc.metadata;
/// `asJson`: all of it as the one object that docs/design/executable.md describes.
Failure explainExecutable(const std::string &path, bool asJson, llvm::raw_ostream &out);

/// The same of a planned model.
void explainPlan(const Compiler &compiler, bool asJson, llvm::raw_ostream &out);

} // namespace gradc

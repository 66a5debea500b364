// Which bytes a command of the exec dialect reads and writes.
#pragma once

#include "ir/Exec.h"

namespace gradc::streams {

/// A stretch of bytes of one space, of all rounds of the repeat that the command is in.
struct Access {
  exec::Space space = exec::Space::State;
  int64_t begin = 0, end = 0; ///< in whole lines of 64 bytes, which the plan aligns to
  bool isWrite = false;       ///< it may read them as well
};

/// Of a launch, whose kernel the module has, or a product.
llvm::SmallVector<Access> accessesOf(mlir::Operation *command);

} // namespace gradc::streams

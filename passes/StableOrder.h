// Puts the ops of a block in an order in which definitions come first, and else as they stood.
#pragma once

#include "mlir/IR/Block.h"

namespace gradc {

/// Each op moves no further than it must: an op that has to wait runs right after what it waited
/// for. (mlir::sortTopologically puts it behind all that could run before.) The block's ops depend
/// on each other without cycles.
void sortStably(mlir::Block &block);

} // namespace gradc

// Random numbers that the threads of a warp make together.
//
// An element takes one of the four words of its counter, and the elements that take the others are
// other threads' (ir/row/Philox.h). So each thread computes all words of a few counters, a quarter
// of what it would alone, and they exchange.
#pragma once

#include "codegen/gpu/BlockPrinter.h"
#include "codegen/kernels/RowNodes.h"

namespace gradc::codegen::gpu {

/// For vectors side by side in a warp, all of whose threads come by, the first thread's beginning
/// at a multiple of a warp's elements. Nothing where vectors are of other than 4 or 8 lanes.
UniformVector uniformOfWarp(BlockPrinter &printer);

} // namespace gradc::codegen::gpu

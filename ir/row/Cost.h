// What a row program costs, whatever runs it.
#pragma once

#include "ir/row/Loops.h"

namespace gradc::row {

/// Operations of floating-point arithmetic on `extent` rows (elements, where flat): one a pointwise
/// f32 node, a reduction's or a column sum's addition. Casts, comparisons, selects, integers and
/// random numbers count as none. `again`: a value that several loops need is computed in each of
/// them; else once.
int64_t flops(const Program &program, const Loops &loops, int64_t extent, bool again);

/// True where a loop loads the buffer's elements (not those that the program has stored itself).
bool loads(const Program &program, const Loop &loop, int32_t buffer);
/// The same of elements that an earlier loop has stored.
bool reloads(const Program &program, const Loop &loop, int32_t buffer);

} // namespace gradc::row

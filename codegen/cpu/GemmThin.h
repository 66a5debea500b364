// Products whose C has a few rows, as in generating one token: nearly all of their time is reading
// B, which is used once. Packing would read and write it again, so B is read in its place.
//
// B stored by rows: the sums of a task's columns lie in the first cache; four rows of B at a time
// are multiplied and added to them. Stored by columns: a column of B and a row of A are multiplied
// lane by lane; the lanes' sums are folded at the end.
//
// Every sum is over the depth in order (of each lane, where B is stored by columns): the same bits
// however C is cut into tasks.
#pragma once

#include "codegen/cpu/Gemm.h"
#include "codegen/cpu/KernelBuilder.h"

namespace gradc::codegen {

/// Whether a product is made like this: a function of the spec alone.
bool isThin(const GemmSpec &spec);

/// Columns of C that a task of a thin product owns, but for the last.
int64_t thinColumns(const GemmSpec &spec);

/// Prints the body of a thin product's kernel.
void emitThinProduct(KernelBuilder &k, const GemmSpec &spec);

} // namespace gradc::codegen

// Reference evaluation of row programs in f64, for tests: slow, obvious, and sharing nothing with
// the emitters but the reading of the program into loops.
#pragma once

#include "ir/row/RowProgram.h"

namespace gradc::row {

/// A buffer's elements: matrix rows * rowStride (flat: the extent), column `columns`, row the
/// extent, scalar 1, columnPartial taskCount * columns.
using Array = std::vector<double>;

/// Number of elements that a buffer has for `extent` rows (elements, where flat).
int64_t elementCount(const Program &program, int32_t buffer, int64_t extent);

/// Runs a program that `verify` accepts on `arrays` (one a buffer, of elementCount elements each),
/// writing its outputs there. Values stored to narrower types are rounded to them, others keep f64.
void evaluate(const Program &program, int64_t extent, std::vector<Array> &arrays);

/// Nearest number of the dtype, ties to even; the fp8 types give their largest number for larger.
double roundTo(Dtype dtype, double value);

} // namespace gradc::row

// An operand read as if it were repeated to a matrix, as row ops broadcast.
#pragma once

#include "ir/HostTensor.h"

namespace gradc::nn {

/// Reads a [rows, columns], [columns], [rows, 1] or single-element tensor at any (row, column) of a
/// matrix of that size. A tensor of `rows` elements of rank 1 is a row where it is not a column.
class Broadcast {
public:
  Broadcast(const HostTensor &ofTensor, int64_t rows, int64_t columns) : tensor(ofTensor) {
    if (tensor.size() == 1)
      return;
    if (tensor.size() == rows * columns)
      rowStep = columns, columnStep = 1;
    else if (tensor.columns() == columns && tensor.size() == columns)
      columnStep = 1;
    else
      rowStep = 1;
  }
  double operator()(int64_t row, int64_t column) const {
    return tensor[row * rowStep + column * columnStep];
  }

private:
  const HostTensor &tensor;
  int64_t rowStep = 0, columnStep = 0;
};

} // namespace gradc::nn

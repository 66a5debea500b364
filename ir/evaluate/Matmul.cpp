// Reference values of matrix products and of matrices in panels.
#include "ir/Nn.h"

using namespace mlir;
using namespace gradc::nn;

namespace {

/// One matrix of a batch, read as if transposed where asked for.
struct Operand {
  const double *begin;
  int64_t rowStep, columnStep;
  double operator()(int64_t row, int64_t column) const {
    return begin[row * rowStep + column * columnStep];
  }
};

Operand matrixOf(const HostTensor &tensor, int64_t batch, bool transposed) {
  int64_t columns = tensor.columns(), rows = tensor.shape[tensor.shape.size() - 2];
  const double *begin = tensor.values.data() + batch * rows * columns;
  return transposed ? Operand{begin, 1, columns} : Operand{begin, columns, 1};
}

} // namespace

LogicalResult MatmulOp::evaluate(ArrayRef<HostTensor> operands,
                                 MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  int64_t m = result.shape[result.shape.size() - 2], n = result.columns();
  int64_t k = operands[0].shape[operands[0].shape.size() - (getTransposeLhs() ? 2 : 1)];
  if (getAccumulator())
    result.values = operands[2].values;
  double scale = 1;
  if (getLhsScale())
    for (const HostTensor &factor : operands.take_back(2))
      scale *= factor[0];
  for (int64_t batch = 0; batch < result.size() / (m * n); ++batch) {
    Operand lhs = matrixOf(operands[0], batch, getTransposeLhs());
    Operand rhs = matrixOf(operands[1], batch, getTransposeRhs());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += lhs(i, p) * rhs(p, j);
        result[(batch * m + i) * n + j] += sum * scale;
      }
  }
  return success();
}

LogicalResult PackPanelsOp::evaluate(ArrayRef<HostTensor> operands,
                                     MutableArrayRef<HostTensor> results) {
  for (HostTensor &result : results)
    result.values = operands[0].values;
  return success();
}

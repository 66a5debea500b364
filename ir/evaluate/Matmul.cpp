// Reference values of matrix products and of matrices in panels.
#include "ir/Nn.h"

#include <cmath>

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

/// The tensor of one of the op's operands; null where the op does not have it.
const HostTensor *tensorOf(Operation *op, Value value, ArrayRef<HostTensor> operands) {
  return value ? &operands[llvm::find(op->getOperands(), value) - op->operand_begin()] : nullptr;
}

void multiply(ProductOpInterface product, ArrayRef<HostTensor> operands, HostTensor &result) {
  int64_t m = result.shape[result.shape.size() - 2], n = result.columns();
  int64_t k = operands[0].shape[operands[0].shape.size() - (product.getTransposeLhs() ? 2 : 1)];
  auto tensor = [&](Value value) { return tensorOf(product, value, operands); };
  if (product.getAccumulator())
    result.values = tensor(product.getAccumulator())->values;
  double scale = 1;
  if (product.getLhsScale())
    scale = (*tensor(product.getLhsScale()))[0] * (*tensor(product.getRhsScale()))[0];
  for (int64_t batch = 0; batch < result.size() / (m * n); ++batch) {
    Operand lhs = matrixOf(operands[0], batch, product.getTransposeLhs());
    Operand rhs = matrixOf(operands[1], batch, product.getTransposeRhs());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += lhs(i, p) * rhs(p, j);
        result[(batch * m + i) * n + j] += sum * scale;
      }
  }
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double geluSlope(double x) {
  double scale = std::sqrt(2 / M_PI);
  double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

} // namespace

LogicalResult MatmulOp::evaluate(ArrayRef<HostTensor> operands,
                                 MutableArrayRef<HostTensor> results) {
  multiply(*this, operands, results[0]);
  return success();
}

LogicalResult EpilogueMatmulOp::evaluate(ArrayRef<HostTensor> operands,
                                         MutableArrayRef<HostTensor> results) {
  HostTensor &result = results[0];
  multiply(*this, operands, result);
  const HostTensor *bias = tensorOf(*this, getBias(), operands);
  const HostTensor *aux = tensorOf(*this, getAux(), operands);
  for (int64_t i = 0; i < result.size(); ++i) {
    double &x = result[i];
    if (bias)
      x += (*bias)[i % result.columns()];
    if (writesAux(getEpilogue()))
      results[1][i] = x;
    if (hasGelu(getEpilogue()))
      x = gelu(x);
    if (aux)
      x *= geluSlope((*aux)[i]);
    if (sumsResult(getEpilogue()))
      results[1][i % result.columns()] += x;
  }
  bool ofLhs = getEpilogue() == Epilogue::BiasGradientLhs;
  if (!ofLhs && getEpilogue() != Epilogue::BiasGradientRhs)
    return success();
  const HostTensor &summed = operands[ofLhs ? 0 : 1];
  bool alongColumns = ofLhs ? !getTransposeLhs() : getTransposeRhs();
  for (int64_t i = 0; i < summed.size(); ++i)
    results[1][alongColumns ? i / summed.columns() : i % summed.columns()] += summed[i];
  return success();
}

LogicalResult PackPanelsOp::evaluate(ArrayRef<HostTensor> operands,
                                     MutableArrayRef<HostTensor> results) {
  for (HostTensor &result : results)
    result.values = operands[0].values;
  return success();
}

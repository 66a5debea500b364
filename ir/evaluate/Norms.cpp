// Reference values of the normalisations and of softmax.
#include "ir/Nn.h"
#include "ir/evaluate/Broadcast.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace gradc::nn;

namespace {

/// One row of a matrix.
struct Row {
  const double *begin;
  int64_t columns;
  Row(const HostTensor &matrix, int64_t row)
      : begin(matrix.values.data() + row * matrix.columns()), columns(matrix.columns()) {}
  double operator[](int64_t c) const { return begin[c]; }
};

/// The mean of f(column) over a row.
template <typename Function> double mean(int64_t columns, Function f) {
  double sum = 0;
  for (int64_t c = 0; c < columns; ++c)
    sum += f(c);
  return sum / static_cast<double>(columns);
}

} // namespace

LogicalResult LayerNormOp::evaluate(ArrayRef<HostTensor> operands,
                                    MutableArrayRef<HostTensor> results) {
  int64_t columns = operands[0].columns();
  const HostTensor &weight = operands[1], &bias = operands[2];
  for (int64_t r = 0; r < operands[0].rows(); ++r) {
    Row x(operands[0], r);
    double average = mean(columns, [&](int64_t c) { return x[c]; });
    double variance = mean(columns, [&](int64_t c) { return (x[c] - average) * (x[c] - average); });
    double rstd = 1 / std::sqrt(variance + getEpsilon().convertToDouble());
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = (x[c] - average) * rstd * weight[c] + bias[c];
    results[1][r] = average;
    results[2][r] = rstd;
  }
  return success();
}

LogicalResult LayerNormGradOp::evaluate(ArrayRef<HostTensor> operands,
                                        MutableArrayRef<HostTensor> results) {
  int64_t rows = operands[0].rows(), columns = operands[0].columns();
  Broadcast weight(operands[2], rows, columns), average(operands[3], rows, columns),
      rstd(operands[4], rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    Row gradient(operands[0], r), x(operands[1], r);
    auto g = [&](int64_t c) { return gradient[c] * weight(r, c); };
    auto unit = [&](int64_t c) { return (x[c] - average(r, 0)) * rstd(r, 0); };
    double meanG = mean(columns, g);
    double meanProduct = mean(columns, [&](int64_t c) { return g(c) * unit(c); });
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = rstd(r, 0) * (g(c) - meanG - unit(c) * meanProduct);
  }
  return success();
}

LogicalResult RmsNormOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  int64_t columns = operands[0].columns();
  for (int64_t r = 0; r < operands[0].rows(); ++r) {
    Row x(operands[0], r);
    double meanSquare = mean(columns, [&](int64_t c) { return x[c] * x[c]; });
    double rstd = 1 / std::sqrt(meanSquare + getEpsilon().convertToDouble());
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = x[c] * rstd * operands[1][c];
    results[1][r] = rstd;
  }
  return success();
}

LogicalResult RmsNormGradOp::evaluate(ArrayRef<HostTensor> operands,
                                      MutableArrayRef<HostTensor> results) {
  int64_t rows = operands[0].rows(), columns = operands[0].columns();
  Broadcast weight(operands[2], rows, columns), rstd(operands[3], rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    Row gradient(operands[0], r), x(operands[1], r);
    auto g = [&](int64_t c) { return gradient[c] * weight(r, c); };
    auto unit = [&](int64_t c) { return x[c] * rstd(r, 0); };
    double meanProduct = mean(columns, [&](int64_t c) { return g(c) * unit(c); });
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = rstd(r, 0) * (g(c) - unit(c) * meanProduct);
  }
  return success();
}

LogicalResult SoftmaxOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  int64_t columns = operands[0].columns();
  for (int64_t r = 0; r < operands[0].rows(); ++r) {
    Row x(operands[0], r);
    double largest = *std::max_element(x.begin, x.begin + columns);
    if (largest == -std::numeric_limits<double>::infinity())
      continue; // a row of -inf gives 0, which the result is already
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c)
      sum += std::exp(x[c] - largest);
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = std::exp(x[c] - largest) / sum;
  }
  return success();
}

LogicalResult SoftmaxGradOp::evaluate(ArrayRef<HostTensor> operands,
                                      MutableArrayRef<HostTensor> results) {
  int64_t columns = operands[0].columns();
  for (int64_t r = 0; r < operands[0].rows(); ++r) {
    Row gradient(operands[0], r), output(operands[1], r);
    double inner = 0;
    for (int64_t c = 0; c < columns; ++c)
      inner += gradient[c] * output[c];
    for (int64_t c = 0; c < columns; ++c)
      results[0][r * columns + c] = output[c] * (gradient[c] - inner);
  }
  return success();
}

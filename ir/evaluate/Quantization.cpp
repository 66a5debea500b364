// Reference values of fp8 quantisation: scales and ranges, but no rounding.
#include "ir/Nn.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gradc::nn;

namespace {

/// The larger of two magnitudes; NaN where either is.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Within ±most; what is not finite gives NaN.
double cut(double x, double most) {
  return std::isfinite(x) ? std::clamp(x, -most, most) : std::nan("");
}

} // namespace

LogicalResult RowAmaxOp::evaluate(ArrayRef<HostTensor> operands,
                                  MutableArrayRef<HostTensor> results) {
  const HostTensor &input = operands[0];
  for (int64_t i = 0; i < input.size(); ++i) {
    double &amax = results[0][i / input.columns()];
    amax = larger(amax, std::abs(input[i]));
  }
  return success();
}

LogicalResult ScaleOfAmaxOp::evaluate(ArrayRef<HostTensor> operands,
                                      MutableArrayRef<HostTensor> results) {
  double amax = 0;
  for (double value : operands[0].values)
    amax = larger(amax, value);
  double &scale = results[0][0];
  if (!std::isfinite(amax))
    scale = std::nan("");
  else if (amax == 0)
    scale = 1;
  else
    scale =
        std::max(std::exp2(std::ceil(std::log2(amax / rangeOf(getFormat()).largest))), 0x1p-126);
  return success();
}

LogicalResult QuantizeOp::evaluate(ArrayRef<HostTensor> operands,
                                   MutableArrayRef<HostTensor> results) {
  double scale = operands[1][0], most = rangeOf(getElementTypeOrSelf(getType())).largest;
  for (int64_t i = 0; i < operands[0].size(); ++i)
    results[0][i] = cut(operands[0][i] / scale, most);
  return success();
}

LogicalResult FakeQuantizeOp::evaluate(ArrayRef<HostTensor> operands,
                                       MutableArrayRef<HostTensor> results) {
  double scale = operands[1][0];
  for (int64_t i = 0; i < operands[0].size(); ++i)
    results[0][i] = cut(operands[0][i] / scale, rangeOf(getFormat()).largest) * scale;
  return success();
}

LogicalResult QuantizeGradientOp::evaluate(ArrayRef<HostTensor> operands,
                                           MutableArrayRef<HostTensor> results) {
  results[0].values = operands[0].values;
  return success();
}
